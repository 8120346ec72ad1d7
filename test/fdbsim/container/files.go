package container

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// Container is a backup container: the files of one backup, or of several that were pointed at it.
type Container struct {
	Store
	URL string
	// StaleDescribe: the plain describe does not move on from what an earlier one wrote down (releases before 7.3.64).
	StaleDescribe bool
}

// LogFile holds the mutations of versions from Begin up to, not including, End.
type LogFile struct {
	Path       string
	Begin, End int64
	Size       int64
}

// RangeFile holds the keys of a range as they were at a version.
type RangeFile struct {
	Path    string
	Version int64
	Size    int64
}

// SnapshotFile is a complete snapshot's list of its range files.
type SnapshotFile struct {
	Path       string
	Begin, End int64
	Bytes      int64
}

// LogContent is what a log file holds.
type LogContent struct {
	Mutations []state.Mutation `json:"mutations"`
}

// RangeContent is what a range file holds.
type RangeContent struct {
	Range state.Range      `json:"range"`
	Keys  []state.KeyValue `json:"keys"`
}

// SnapshotContent is what a snapshot's file holds.
type SnapshotContent struct {
	Files []state.RangeFile `json:"files"`
}

// NewUID makes an identity as FoundationDB prints them.
func NewUID() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

const blockSize = 1048576

// bucketOf is the folder of a log file: versions in steps of 10^11, as two levels of four digits.
func bucketOf(version int64) string {
	v := version / 100_000_000_000
	return fmt.Sprintf("%04d/%04d", v/10_000, v%10_000)
}

// WriteLog writes a log file.
func (c *Container) WriteLog(ctx context.Context, begin, end int64, mutations []state.Mutation) (int64, error) {
	var bytes int64
	for _, m := range mutations {
		bytes += int64(len(m.Key) + len(m.Value) + len(m.End))
	}
	name := fmt.Sprintf("logs/%s/log,%d,%d,%s,%d", bucketOf(begin), begin, end, NewUID(), blockSize)
	var content []byte
	if len(mutations) > 0 {
		var err error
		if content, err = json.Marshal(LogContent{Mutations: mutations}); err != nil {
			return 0, err
		}
	}
	return bytes, c.Write(ctx, name, content)
}

// WriteRange writes a range file of the snapshot that began at a version.
func (c *Container) WriteRange(
	ctx context.Context, snapshot, version int64, r state.Range, keys []state.KeyValue,
) (state.RangeFile, error) {
	content, err := json.Marshal(RangeContent{Range: r, Keys: keys})
	if err != nil {
		return state.RangeFile{}, err
	}
	file := state.RangeFile{
		Path:    fmt.Sprintf("kvranges/snapshot.%018d/0/range,%d,%s,%d", snapshot, version, NewUID(), blockSize),
		Version: version, Bytes: int64(len(content)), Range: r,
	}
	return file, c.Write(ctx, file.Path, content)
}

// WriteSnapshot writes down that a snapshot is complete.
func (c *Container) WriteSnapshot(ctx context.Context, files []state.RangeFile) (SnapshotFile, error) {
	s := SnapshotFile{Begin: files[0].Version, End: files[0].Version}
	for _, file := range files {
		s.Begin, s.End, s.Bytes = min(s.Begin, file.Version), max(s.End, file.Version), s.Bytes+file.Bytes
	}
	content, err := json.Marshal(SnapshotContent{Files: files})
	if err != nil {
		return s, err
	}
	s.Path = fmt.Sprintf("snapshots/snapshot,%d,%d,%d", s.Begin, s.End, s.Bytes)
	return s, c.Write(ctx, s.Path, content)
}

// Read reads a JSON file of the container.
func (c *Container) readInto(ctx context.Context, name string, into any) error {
	content, err := c.Read(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return ErrMissingData
	}
	if err != nil || len(content) == 0 {
		return err
	}
	if json.Unmarshal(content, into) != nil {
		return ErrCorrupt
	}
	return nil
}

// numbers returns the comma-separated numbers of a file's name after its kind.
func numbers(name, kind string, count int) []int64 {
	parts := strings.Split(path.Base(name), ",")
	if parts[0] != kind || len(parts) <= count {
		return nil
	}
	found := make([]int64, count)
	for i := range found {
		var err error
		if found[i], err = strconv.ParseInt(parts[i+1], 10, 64); err != nil {
			return nil
		}
	}
	return found
}

// Logs lists the log files that hold anything from one version up to, including, another, in their order.
func (c *Container) Logs(ctx context.Context, from, to int64) ([]LogFile, error) {
	objects, err := c.List(ctx, "logs/")
	if err != nil {
		return nil, err
	}
	var logs []LogFile
	for _, object := range objects {
		if n := numbers(object.Path, "log", 2); n != nil && n[0] <= to && n[1] > from {
			logs = append(logs, LogFile{Path: object.Path, Begin: n[0], End: n[1], Size: object.Size})
		}
	}
	slices.SortFunc(logs, func(a, b LogFile) int {
		if a.Begin != b.Begin {
			return int(min(max(a.Begin-b.Begin, -1), 1))
		}
		return int(min(max(a.End-b.End, -1), 1))
	})
	return logs, nil
}

// RangeFiles lists the range files of versions up to, including, one.
func (c *Container) RangeFiles(ctx context.Context, to int64) ([]RangeFile, error) {
	objects, err := c.List(ctx, "kvranges/")
	if err != nil {
		return nil, err
	}
	var files []RangeFile
	for _, object := range objects {
		if n := numbers(object.Path, "range", 1); n != nil && n[0] <= to {
			files = append(files, RangeFile{Path: object.Path, Version: n[0], Size: object.Size})
		}
	}
	return files, nil
}

// Snapshots lists the complete snapshots, oldest first.
func (c *Container) Snapshots(ctx context.Context) ([]SnapshotFile, error) {
	objects, err := c.List(ctx, "snapshots/")
	if err != nil {
		return nil, err
	}
	var found []SnapshotFile
	for _, object := range objects {
		if n := numbers(object.Path, "snapshot", 3); n != nil {
			found = append(found, SnapshotFile{Path: object.Path, Begin: n[0], End: n[1], Bytes: n[2]})
		}
	}
	slices.SortFunc(found, func(a, b SnapshotFile) int { return int(min(max(a.End-b.End, -1), 1)) })
	return found, nil
}

// Names of the properties.
const (
	logBegin      = "log_begin_version"
	logEnd        = "log_end_version"
	expiredEnd    = "expired_end_version"
	unreliableEnd = "unreliable_end_version"
	logType       = "mutation_log_type"
)

// property reads a property; nil when it is not set.
func (c *Container) property(ctx context.Context, name string) (*int64, error) {
	content, err := c.Read(ctx, "properties/"+name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return nil, ErrCorrupt
	}
	return &value, nil
}

func (c *Container) setProperty(ctx context.Context, name string, value int64) error {
	return c.Write(ctx, "properties/"+name, strconv.AppendInt(nil, value, 10))
}
