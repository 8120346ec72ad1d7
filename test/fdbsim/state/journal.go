package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Call is one run of a tool.
type Call struct {
	ID       string    `json:"id"`
	Cluster  string    `json:"cluster,omitempty"` // "description:id"; "" when it was told none
	Tool     string    `json:"tool,omitempty"`
	Version  string    `json:"version,omitempty"` // of the tool
	Args     []string  `json:"args,omitempty"`    // as given, without the tool's name
	Env      []string  `json:"env,omitempty"`     // names of the environment's variables
	PID      int       `json:"pid,omitempty"`
	Begin    time.Time `json:"begin,omitzero"`
	End      time.Time `json:"end,omitzero"` // zero while it runs, and for ever when it was killed
	ExitCode int       `json:"exitCode"`     // only with End
}

// Dry says whether the command only tried whether a backup can be started.
func (c Call) Dry() bool {
	return c.Tool == "fdbbackup" && (slices.Contains(c.Args, "-n") || slices.Contains(c.Args, "--verify-uid"))
}

// Ended says whether the command came to its own end.
func (c Call) Ended() bool { return !c.End.IsZero() }

const journal = "calls.jsonl"

// Record adds the beginning or the end of a call to the journal.
func (s Store) Record(c Call) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	folder, err := s.makeFolder(c.Cluster)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, journal), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Calls returns the runs of tools for a cluster, oldest first; those told none for "".
func (s Store) Calls(cluster string) ([]Call, error) {
	content, err := os.ReadFile(filepath.Join(s.Folder(cluster), journal))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var calls []Call
	place := map[string]int{}
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		var c Call
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if at, begun := place[c.ID]; begun {
			calls[at].End, calls[at].ExitCode = c.End, c.ExitCode
			continue
		}
		place[c.ID] = len(calls)
		calls = append(calls, c)
	}
	return calls, nil
}
