// Package state is the stand-in's database: what the FoundationDB clusters of a test hold, on disk, shared by the processes
// of the tools and of the agents. Every change is made under a lock and written in one step, so that a process that is
// killed leaves either the old or the new state.
package state

import (
	"bytes"
	"slices"
	"time"
)

// VersionsPerSecond is how fast versions advance.
const VersionsPerSecond = 1_000_000

// States of a backup, as `fdbbackup status --json` names them.
const (
	Submitted             = "Submitted"
	Running               = "Running"
	RunningDifferentially = "RunningDifferentially"
	Completed             = "Completed"
	Aborted               = "Aborted"
)

// States of a restore, as `fdbrestore status` names them.
const (
	RestoreQueued    = "queued"
	RestoreStarting  = "starting"
	RestoreRunning   = "running"
	RestoreCompleted = "completed"
	RestoreAborted   = "aborted"
)

// Cluster is all that a FoundationDB cluster knows but its keys.
type Cluster struct {
	Connection string     `json:"connection"`
	Created    time.Time  `json:"created"`
	Paused     bool       `json:"paused,omitempty"`
	LockUID    string     `json:"lockUID,omitempty"`
	LastStart  string     `json:"lastStart,omitempty"` // of any backup, in the local time of who started it
	Backups    []*Backup  `json:"backups,omitempty"`
	Restores   []*Restore `json:"restores,omitempty"`
	// FirstSnapshots is the record of every first snapshot that ran, for tests.
	FirstSnapshots []Interval `json:"firstSnapshots,omitempty"`
}

// Interval says when one first snapshot ran: from when an agent began it until the backup was restorable, or was stopped. End
// is zero while it runs.
type Interval struct {
	Tag   string    `json:"tag"`
	UID   string    `json:"uid"`
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end,omitzero"`
}

// Backup is the last backup that was started on a tag.
type Backup struct {
	Tag             string    `json:"tag"`
	UID             string    `json:"uid"`
	State           string    `json:"state"`
	URL             string    `json:"url"`
	Ranges          []Range   `json:"ranges"`
	Default         bool      `json:"default,omitempty"` // the default ranges: all keys and some of the system's
	IntervalSeconds int64     `json:"intervalSeconds"`
	InitialSeconds  int64     `json:"initialSeconds,omitempty"`
	StopWhenDone    bool      `json:"stopWhenDone,omitempty"`
	LogBytes        int64     `json:"logBytes"`
	RangeBytes      int64     `json:"rangeBytes"`
	LogBegin        int64     `json:"logBegin,omitempty"`
	LogEnd          int64     `json:"logEnd,omitempty"`
	FirstEnd        int64     `json:"firstEnd,omitempty"` // end of the first complete snapshot
	SnapshotEnd     int64     `json:"snapshotEnd,omitempty"`
	Snapshot        *Snapshot `json:"snapshot,omitempty"`
	Errors          []Problem `json:"errors,omitempty"`
}

// Snapshot is the one that is being written.
type Snapshot struct {
	Begin           int64       `json:"begin"`
	EndTarget       int64       `json:"endTarget"`
	IntervalSeconds int64       `json:"intervalSeconds"`
	LastDispatch    int64       `json:"lastDispatch"`
	ShardsBehind    int64       `json:"shardsBehind"`
	Parts           []Range     `json:"parts,omitempty"` // each becomes a file
	Files           []RangeFile `json:"files,omitempty"` // of the first parts
	Done            bool        `json:"done,omitempty"`
	Worked          float64     `json:"worked"` // seconds that agents worked on it
	Tick            time.Time   `json:"tick,omitzero"`
}

// RangeFile is a written file of a snapshot.
type RangeFile struct {
	Path    string `json:"path"`
	Version int64  `json:"version"`
	Bytes   int64  `json:"bytes"`
	Range   Range  `json:"range"`
}

// Problem is an error of a task that is tried again.
type Problem struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
	Task    string    `json:"task"`
}

// Range holds the keys from Begin up to, not including, End.
type Range struct {
	Begin []byte `json:"begin"`
	End   []byte `json:"end"`
}

// Restore is the last restore that was started on a tag.
type Restore struct {
	Tag             string    `json:"tag"`
	UID             string    `json:"uid"`
	State           string    `json:"state"`
	URL             string    `json:"url"`
	Version         int64     `json:"version"`
	Ranges          []Range   `json:"ranges"`
	Filtered        bool      `json:"filtered,omitempty"` // Ranges were given
	AddPrefix       []byte    `json:"addPrefix,omitempty"`
	RemovePrefix    []byte    `json:"removePrefix,omitempty"`
	Blocks          int       `json:"blocks"`
	BlocksDone      int       `json:"blocksDone"`
	InProgress      int       `json:"inProgress"`
	Files           int       `json:"files"`
	BytesWritten    int64     `json:"bytesWritten"`
	CurrentVersion  int64     `json:"currentVersion"`
	FirstConsistent int64     `json:"firstConsistent"`
	ApplyVersionLag int64     `json:"applyVersionLag"`
	Error           *Problem  `json:"error,omitempty"`
	Worked          float64   `json:"worked"` // seconds that agents worked on it
	Tick            time.Time `json:"tick,omitzero"`
}

// Version is the version that the cluster has reached at a moment.
func (c *Cluster) Version(at time.Time) int64 {
	return max(0, at.Sub(c.Created).Microseconds())
}

// Time is the moment at which the cluster reached a version: what its time keeper says.
func (c *Cluster) Time(version int64) time.Time {
	return c.Created.Add(time.Duration(version) * time.Microsecond)
}

// Backup returns the backup of a tag, nil when it was never used.
func (c *Cluster) Backup(tag string) *Backup {
	for _, b := range c.Backups {
		if b.Tag == tag {
			return b
		}
	}
	return nil
}

// SetBackup puts a backup in the place of its tag's last one. Tags stay in their alphabetical order.
func (c *Cluster) SetBackup(b *Backup) {
	c.Backups = slices.DeleteFunc(c.Backups, func(old *Backup) bool { return old.Tag == b.Tag })
	at, _ := slices.BinarySearchFunc(c.Backups, b.Tag, func(old *Backup, tag string) int { return compare(old.Tag, tag) })
	c.Backups = slices.Insert(c.Backups, at, b)
}

// Restore returns the restore of a tag, nil when it was never used.
func (c *Cluster) Restore(tag string) *Restore {
	for _, r := range c.Restores {
		if r.Tag == tag {
			return r
		}
	}
	return nil
}

// SetRestore puts a restore in the place of its tag's last one.
func (c *Cluster) SetRestore(r *Restore) {
	c.Restores = slices.DeleteFunc(c.Restores, func(old *Restore) bool { return old.Tag == r.Tag })
	at, _ := slices.BinarySearchFunc(c.Restores, r.Tag, func(old *Restore, tag string) int { return compare(old.Tag, tag) })
	c.Restores = slices.Insert(c.Restores, at, r)
}

// EndFirstSnapshot closes the record of a backup's first snapshot, if it is open.
func (c *Cluster) EndFirstSnapshot(uid string, at time.Time) {
	for i := range c.FirstSnapshots {
		if record := &c.FirstSnapshots[i]; record.UID == uid && record.End.IsZero() {
			record.End = at
		}
	}
}

// Runnable says whether agents work on a backup in this state.
func (b *Backup) Runnable() bool {
	return b.State == Submitted || b.State == Running || b.State == RunningDifferentially
}

// Restorable returns the latest version that the database believes can be restored.
func (b *Backup) Restorable() (version int64, restorable bool) {
	if b.FirstEnd == 0 || b.LogEnd <= b.FirstEnd {
		return 0, false
	}
	return b.LogEnd - 1, true
}

// Runnable says whether agents work on a restore in this state.
func (r *Restore) Runnable() bool {
	return r.State == RestoreQueued || r.State == RestoreStarting || r.State == RestoreRunning
}

// Contains says whether a key is in the range.
func (r Range) Contains(key []byte) bool {
	return compare(string(key), string(r.Begin)) >= 0 && compare(string(key), string(r.End)) < 0
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// Filter are the ranges that were asked for; none when all were.
func (r *Restore) Filter() []Range {
	if !r.Filtered {
		return nil
	}
	return r.Ranges
}

// Target is the key under which a key of the backup is restored, if it is wanted.
func (r *Restore) Target(key []byte) (target []byte, wanted bool) {
	for _, wanted := range r.Ranges {
		if wanted.Contains(key) {
			return r.Rename(key), true
		}
	}
	return nil, false
}

// Rename takes the one prefix from a key and gives it the other.
func (r *Restore) Rename(key []byte) []byte {
	return slices.Concat(r.AddPrefix, bytes.TrimPrefix(key, r.RemovePrefix))
}

// RenameRange is where the keys of a range go.
func (r *Restore) RenameRange(old Range) Range {
	renamed := Range{Begin: r.Rename(old.Begin), End: r.Rename(old.End)}
	if len(r.RemovePrefix) > 0 && !bytes.HasPrefix(old.End, r.RemovePrefix) {
		renamed.End = Next(r.AddPrefix)
	}
	return renamed
}

// Next is the first key after all keys that begin with a prefix.
func Next(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return []byte{0xff}
	}
	end[len(end)-1]++
	return end
}
