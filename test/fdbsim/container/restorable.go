package container

import (
	"context"
	"slices"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// Set is what is needed to restore to a version.
type Set struct {
	Version    int64
	Begin, End int64 // versions of the oldest and the newest range file
	Ranges     []state.RangeFile
	Logs       []LogFile
}

// RestorableSet finds the files that restore to a version: the newest snapshot before it whose logs reach it without a gap. With
// a filter, only files that hold anything of these ranges count. It returns nil when there is no such set, ErrMissingData when a
// file of the snapshot is gone.
func (c *Container) RestorableSet(ctx context.Context, version int64, filter []state.Range) (*Set, error) {
	snapshots, err := c.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	for _, snapshot := range slices.Backward(snapshots) {
		if snapshot.Begin > version {
			continue
		}
		ranges, err := c.rangesOf(ctx, snapshot)
		if err != nil {
			return nil, err
		}
		set := &Set{Version: version, Begin: snapshot.Begin, End: snapshot.End, Ranges: ranges}
		if len(filter) > 0 {
			if err := set.filter(filter); err != nil {
				return nil, err
			}
		}
		if set.End > version {
			continue
		}
		if set.Begin == set.End && set.End == version {
			return set, nil
		}
		complete, err := c.logsOf(ctx, set)
		if err != nil || !complete {
			return nil, err
		}
		return set, nil
	}
	return nil, nil
}

// filter leaves the files that hold anything of some ranges.
func (s *Set) filter(wanted []state.Range) error {
	s.Ranges = s.Blocks(wanted)
	if len(s.Ranges) == 0 {
		return ErrNoOverlap
	}
	s.Begin, s.End = s.Ranges[0].Version, s.Ranges[0].Version
	for _, file := range s.Ranges {
		s.Begin, s.End = min(s.Begin, file.Version), max(s.End, file.Version)
	}
	return nil
}

// logsOf finds the logs that lead from a set's oldest range file to its version, and says whether they do.
func (c *Container) logsOf(ctx context.Context, set *Set) (bool, error) {
	logs, err := c.Logs(ctx, set.Begin, set.Version)
	if err != nil || len(logs) == 0 || logs[0].Begin > set.Begin {
		return false, err
	}
	end := int64(0)
	for i, log := range logs {
		if i > 0 && log.Begin > end {
			break
		}
		if log.End > end {
			end = log.End
			set.Logs = append(set.Logs, log)
		}
	}
	return end > set.Version, nil
}

// rangesOf reads the list of a snapshot's files and sees that they are there.
func (c *Container) rangesOf(ctx context.Context, s SnapshotFile) ([]state.RangeFile, error) {
	var content SnapshotContent
	if err := c.readInto(ctx, s.Path, &content); err != nil {
		return nil, err
	}
	objects, err := c.List(ctx, "kvranges/")
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, object := range objects {
		there[object.Path] = true
	}
	for _, file := range content.Files {
		if !there[file.Path] {
			return nil, ErrMissingData
		}
	}
	return content.Files, nil
}

// Blocks is how many range files of the set hold anything of the wanted ranges.
func (s *Set) Blocks(wanted []state.Range) []state.RangeFile {
	return slices.DeleteFunc(slices.Clone(s.Ranges), func(file state.RangeFile) bool {
		return !slices.ContainsFunc(wanted, func(r state.Range) bool {
			return string(file.Range.Begin) < string(r.End) && string(r.Begin) < string(file.Range.End)
		})
	})
}

// Keys returns the keys of one range file.
func (c *Container) Keys(ctx context.Context, file state.RangeFile) ([]state.KeyValue, error) {
	var content RangeContent
	err := c.readInto(ctx, file.Path, &content)
	return content.Keys, err
}

// Mutations returns the changes in the set's logs up to its version, oldest first.
func (c *Container) Mutations(ctx context.Context, s *Set) ([]state.Mutation, error) {
	var all []state.Mutation
	for _, log := range s.Logs {
		var content LogContent
		if err := c.readInto(ctx, log.Path, &content); err != nil {
			return nil, err
		}
		for _, m := range content.Mutations {
			if m.Version <= s.Version {
				all = append(all, m)
			}
		}
	}
	return all, nil
}
