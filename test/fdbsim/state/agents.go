package state

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Agent is a backup_agent that runs, or ran.
type Agent struct {
	ID       string            `json:"id"`
	PID      int               `json:"pid"`
	Version  string            `json:"version"`
	Locality map[string]string `json:"locality,omitempty"`
	Beat     time.Time         `json:"beat"` // by the machine's clock
	Updated  time.Time         `json:"updated,omitzero"`
	Tags     json.RawMessage   `json:"tags,omitempty"` // what it last wrote for status json; nothing at its start
	Paused   bool              `json:"paused,omitempty"`
	Broken   bool              `json:"broken,omitempty"` // it cannot write its status
}

// maxSilence is how long an agent that lives may be silent on a busy machine.
const maxSilence = 15 * time.Second

// Answers says whether the agent is there to work.
func (a Agent) Answers() bool {
	if a.PID == 0 || time.Since(a.Beat) > maxSilence {
		return false
	}
	err := syscall.Kill(a.PID, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// SaveAgent writes down that an agent lives.
func (s Store) SaveAgent(cluster string, a Agent) error {
	return writeJSON(filepath.Join(s.Folder(cluster), "agents", a.ID+".json"), a)
}

// Agents lists all agents that ever ran.
func (s Store) Agents(cluster string) ([]Agent, error) {
	folder := filepath.Join(s.Folder(cluster), "agents")
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var agents []Agent
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		var a Agent
		if err := readJSON(filepath.Join(folder, entry.Name()), &a); err != nil {
			return nil, err
		}
		agents = append(agents, a)
	}
	return agents, nil
}
