package fdb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// Status is what `fdbbackup status --json` shows of one tag and of the cluster's agents.
type Status struct {
	// AgentsPaused: all agents of the cluster are paused, also for restores.
	AgentsPaused bool
	// Tag is without Errors: see RecentErrors.
	Tag contract.FDBTag
}

// point is a version with its time, as the tools print it.
type point struct {
	Version      int64
	EpochSeconds int64
	Timestamp    string
}

// timestampLayout is the tools' format of a time.
const timestampLayout = "2006/01/02.15:04:05-0700"

const (
	maxName       = 128
	maxErrors     = 5
	maxErrorBytes = 200
)

// ParseStatus reads the output of `fdbbackup status --json`. Fields that FoundationDB leaves out or adds do no harm. A tag that
// was never used has the state NeverRan.
func ParseStatus(output []byte) (Status, error) {
	var document struct {
		BackupAgentsPaused bool
		Tag                *string
		UID                string
		Status             struct {
			Name    string
			Running bool
		}
		Restorable              bool
		DestinationURL          string
		SnapshotIntervalSeconds int64
		RangeBytesWritten       int64
		LatestRestorablePoint   *point
	}
	if err := decode(output, &document); err != nil || document.Tag == nil {
		return Status{}, errors.New("the answer of fdbbackup status is not the JSON document of a tag")
	}
	return Status{AgentsPaused: document.BackupAgentsPaused, Tag: contract.FDBTag{
		Tag:                   Bound(*document.Tag, maxName),
		UID:                   Bound(document.UID, maxName),
		State:                 cmp.Or(Bound(document.Status.Name, maxName), StateNeverRan),
		Running:               document.Status.Running,
		Restorable:            document.Restorable,
		URL:                   boundURL(document.DestinationURL),
		SnapshotPeriodSeconds: document.SnapshotIntervalSeconds,
		RangeBytes:            document.RangeBytesWritten,
		Latest:                document.LatestRestorablePoint.known(),
	}}, nil
}

// decode reads the JSON object of an output; a tool may have printed a warning before it.
func decode(output []byte, into any) error {
	start := bytes.IndexByte(output, '{')
	if start < 0 {
		return errors.New("no JSON")
	}
	return json.NewDecoder(bytes.NewReader(output[start:])).Decode(into)
}

// known returns the point for a payload; nil if there is none. The time is the tool's estimate, and may be missing.
func (p *point) known() *contract.FDBPoint {
	if p == nil || p.Version <= 0 {
		return nil
	}
	known := &contract.FDBPoint{Version: p.Version, Time: p.EpochSeconds}
	if known.Time <= 0 {
		known.Time = 0
		if at, err := time.Parse(timestampLayout, p.Timestamp); err == nil && at.Unix() > 0 {
			known.Time = at.Unix()
		}
	}
	return known
}

// boundURL returns a URL without secrets; empty if it is too long, because a cut one would be another place.
func boundURL(url string) string {
	if len(url) > maxURL {
		return ""
	}
	return Bound(CleanURL(url), maxURL)
}

// recentError is a line like "9 second(s) ago : 'Platform error' on 'file_backup_write_range_5.2'".
var recentError = regexp.MustCompile(`^\s*[0-9.]+ \S+ ago : (.+)$`)

// RecentErrors returns the recent errors of the agents in the text of `fdbbackup status`, each once and without its age, so that
// the same errors give the same list. Errors from before the latest restorable point no longer matter.
func RecentErrors(text []byte) []string {
	var found []string
	recent := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "Recent Errors"):
			recent = true
		case strings.HasPrefix(line, "Older Errors"):
			recent = false
		}
		match := recentError.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if !recent || match == nil {
			continue
		}
		said := Bound(Redact(match[1], nil), maxErrorBytes)
		if said != "" && len(found) < maxErrors && !slices.Contains(found, said) {
			found = append(found, said)
		}
	}
	return found
}

// States of a backup, as `fdbbackup status --json` names them.
const (
	StateNeverRan              = "NeverRan"
	StateSubmitted             = "Submitted"
	StateRunning               = "Running"
	StateRunningDifferentially = "RunningDifferentially"
	StateCompleted             = "Completed"
	StateAborted               = "Aborted"
)
