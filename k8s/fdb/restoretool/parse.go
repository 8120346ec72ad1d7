package restoretool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	maxName  = 128
	maxError = 300
	// agentAge is the maximum age of an agent's last sign of life: it writes one every 40 s, and a dead agent's stays for 2 minutes.
	agentAge = 2 * time.Minute
)

var (
	// record begins the state of a restore. Some commands print other words before it.
	record = regexp.MustCompile(`(?m)^(?:[A-Za-z_]+:? )?Tag: (\S*)\s+(?:UID: ([0-9A-Fa-f]+)\s+)?State: (\S+)`)
	// unused are the words for a tag on which there was no restore; they differ between releases.
	unused = regexp.MustCompile(`^un(in)?iti?ali[sz]ed$`)

	blocks         = regexp.MustCompile(`\sBlocks: ([0-9]+)/([0-9]+)`)
	bytesWritten   = regexp.MustCompile(`\sBytesWritten: ([0-9]+)`)
	currentVersion = regexp.MustCompile(`\sCurrentVersion: ([0-9]+)`)
	targetVersion  = regexp.MustCompile(`\sVersion: ([0-9]+)\s*$`)
	// age ends an error: "27s ago.", or "0.5 seconds ago".
	age = regexp.MustCompile(`\s*[0-9.]+\s*[a-z()]*\s+ago\.?\s*$`)
)

// ParseRestoreStatus reads the output of `fdbrestore status` about a tag; nil if there never was a restore on it. The output is
// text, whose words differ between releases. It ignores other tags.
func ParseRestoreStatus(output []byte, tag string) (*contract.FDBRestoreProgress, error) {
	text := string(output)
	begins := record.FindAllStringSubmatchIndex(text, -1)
	if len(begins) == 0 {
		if said := strings.TrimSpace(text); said != "" && !strings.Contains(said, "No restores found") {
			return nil, errors.New("the answer of fdbrestore status is not the state of a restore")
		}
		return nil, nil //nolint:nilnil // no restore is no error
	}
	var found *contract.FDBRestoreProgress
	for i, at := range begins {
		if text[at[2]:at[3]] != tag {
			continue
		}
		end := len(text)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		found = parseRecord(text[at[0]:end]) // the latest one is the last
	}
	return found, nil
}

func parseRecord(text string) *contract.FDBRestoreProgress {
	parts := record.FindStringSubmatch(text)
	state := strings.ToLower(parts[3])
	if unused.MatchString(state) {
		return nil
	}
	progress := &contract.FDBRestoreProgress{
		Tag: fdb.Bound(parts[1], maxName), UID: strings.ToLower(fdb.Bound(parts[2], maxName)), State: fdb.Bound(state, maxName),
	}
	// An error may hold any text, and ranges any keys: the numbers are read before them, and at the very end.
	head, rest, _ := strings.Cut(text, "LastError: ")
	if match := blocks.FindStringSubmatch(head); match != nil {
		progress.BlocksDone, progress.Blocks = number(match[1]), number(match[2])
	}
	progress.BytesWritten = numberIn(bytesWritten, head)
	progress.CurrentVersion = numberIn(currentVersion, head)
	if progress.Version = numberIn(targetVersion, rest); rest == "" {
		progress.Version = numberIn(targetVersion, head)
	}
	problem, _, _ := strings.Cut(rest, "  URL: ")
	progress.LastError = parseError(problem)
	return progress
}

// parseError returns an error without its age, so that the same error always gives the same text.
func parseError(text string) string {
	text = strings.TrimSpace(text)
	if text == "None" {
		return ""
	}
	text = age.ReplaceAllString(text, "")
	if len(text) > 1 && strings.HasPrefix(text, "'") && strings.HasSuffix(text, "'") {
		text = text[1 : len(text)-1]
	}
	return fdb.Bound(fdb.Redact(text, nil), maxError)
}

func numberIn(form *regexp.Regexp, text string) int64 {
	match := form.FindStringSubmatch(text)
	if match == nil {
		return 0
	}
	return number(match[1])
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0 // more digits than a version has
	}
	return value
}

// DatabaseStatus is the part of `fdbcli --exec 'status json'` that matters for a restore.
type DatabaseStatus struct {
	// Available: the database answers.
	Available bool
	// LockUID is that of its lock; empty if it is not locked. LockKnown: the status says whether it is.
	LockUID   string
	LockKnown bool
	// Agents is how many backup agents have shown lately that they live. Paused: they are paused.
	Agents int
	Paused bool
}

// lockWithoutUID is used for a lock without a UID in the status.
const lockWithoutUID = "unknown"

// ParseDatabaseStatus reads the status document of a database. Parts that it leaves out or adds do no harm.
func ParseDatabaseStatus(output []byte) (DatabaseStatus, error) {
	var document struct {
		Client *struct {
			Timestamp float64 `json:"timestamp"`
			Database  struct {
				Available bool `json:"available"`
			} `json:"database_status"`
		} `json:"client"`
		Cluster struct {
			Timestamp float64 `json:"cluster_controller_timestamp"`
			Lock      struct {
				Locked *bool  `json:"locked"`
				UID    string `json:"lock_uid"`
			} `json:"database_lock_state"`
			Layers struct {
				Backup struct {
					Paused    bool `json:"paused"`
					Instances map[string]struct {
						Updated float64 `json:"last_updated"`
					} `json:"instances"`
				} `json:"backup"`
			} `json:"layers"`
		} `json:"cluster"`
	}
	start := max(0, bytes.IndexByte(output, '{')) // a warning may come before it
	if err := json.Unmarshal(output[start:], &document); err != nil || document.Client == nil {
		return DatabaseStatus{}, errors.New("the answer of fdbcli is not the status document of a database")
	}
	lock, backup := document.Cluster.Lock, document.Cluster.Layers.Backup
	status := DatabaseStatus{
		Available: document.Client.Database.Available, LockKnown: lock.Locked != nil, Paused: backup.Paused,
	}
	if lock.Locked != nil && *lock.Locked {
		status.LockUID = cmp.Or(fdb.Bound(lock.UID, maxName), lockWithoutUID)
	}
	now := max(document.Client.Timestamp, document.Cluster.Timestamp) // our clock would count the age of the document, too
	for _, instance := range backup.Instances {
		if now-instance.Updated <= agentAge.Seconds() {
			status.Agents++
		}
	}
	return status, nil
}

// rangeHead is what getrangekeys prints before the keys.
const rangeHead = "Range limited to "

// ParseRangeKeys reads the output of fdbcli's `getrangekeys`, and reports whether the range has keys.
func ParseRangeKeys(output []byte) (some bool, err error) {
	_, keys, answered := strings.Cut(string(output), rangeHead)
	if !answered {
		return false, errors.New("the answer of fdbcli getrangekeys is not a list of keys")
	}
	return slices.ContainsFunc(strings.Split(keys, "\n"), func(line string) bool { return strings.HasPrefix(line, "`") }), nil
}

// resolved matches the line of a dry run with the version at a time.
var resolved = regexp.MustCompile(`(?m)^Timestamp '[^'\n]*' resolves to version ([0-9]+)\s*$`)

// ParseResolved reads which version `fdbrestore start --timestamp` chooses for a time.
func ParseResolved(output []byte) (int64, error) {
	version := numberIn(resolved, string(output))
	if version == 0 {
		return 0, errors.New("fdbrestore does not say which version belongs to the timestamp")
	}
	return version, nil
}
