package container

import (
	"context"
	"errors"
	"math"

	"golang.org/x/sync/errgroup"
)

// parallelDeletes is how many files are deleted at once.
const parallelDeletes = 16

// Progress is told what expire and delete do.
type Progress func(step string)

// Expire deletes the data before a version. Negative versions are relative to the end of the last log. Without force a restorable
// snapshot must remain that begins at or after before and ends at or before restorableAfter.
func (c *Container) Expire(ctx context.Context, before, restorableAfter int64, force bool, progress Progress) error {
	progress("Describing backup")
	d, err := c.Describe(ctx, false, &before)
	if err != nil {
		return err
	}
	if before, err = Resolve(before, d.MaxLogEnd); err != nil {
		return err
	}
	if restorableAfter, err = Resolve(restorableAfter, d.MaxLogEnd); err != nil {
		return err
	}
	if restorableAfter < before {
		return ErrUnsafe
	}
	if before <= or(d.ExpiredEnd, -1) {
		return nil
	}
	safe := false
	for _, s := range d.Snapshots {
		safe = safe || (s.Restorable && s.Begin >= before && s.End <= restorableAfter)
	}
	if !safe && !force {
		return ErrUnsafe
	}
	progress("Listing files")
	before, doomed, err := c.before(ctx, d, before)
	if err != nil {
		return err
	}
	progress("Initial metadata update")
	if err := c.advance(ctx, unreliableEnd, before); err != nil {
		return err
	}
	progress("Deleting files")
	if err := c.deleteAll(ctx, doomed); err != nil {
		return err
	}
	progress("Final metadata update")
	return c.advance(ctx, expiredEnd, before)
}

// before lists what is to be deleted for a cutoff. A cutoff within a log file moves back to the file's begin.
func (c *Container) before(ctx context.Context, d *Description, cutoff int64) (int64, []string, error) {
	logs, err := c.Logs(ctx, or(d.ExpiredEnd, 0), cutoff-1)
	if err != nil {
		return cutoff, nil, err
	}
	ranges, err := c.RangeFiles(ctx, cutoff-1)
	if err != nil {
		return cutoff, nil, err
	}
	if len(logs) > 0 {
		if last := logs[len(logs)-1]; last.End > cutoff {
			cutoff = last.Begin
			logs = logs[:len(logs)-1]
		}
	}
	var doomed []string
	for _, log := range logs {
		doomed = append(doomed, log.Path)
	}
	for _, file := range ranges {
		if file.Version < cutoff {
			doomed = append(doomed, file.Path)
		}
	}
	for _, s := range d.Snapshots {
		if s.End < cutoff {
			doomed = append(doomed, s.Path)
		}
	}
	return cutoff, doomed, nil
}

// advance sets a property to a version, never back.
func (c *Container) advance(ctx context.Context, name string, version int64) error {
	old, err := c.property(ctx, name)
	if err != nil || or(old, 0) >= version {
		return err
	}
	return c.setProperty(ctx, name, version)
}

func (c *Container) deleteAll(ctx context.Context, names []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDeletes)
	for _, name := range names {
		group.Go(func() error { return c.Delete(ctx, name) })
	}
	return group.Wait()
}

// DeleteAll deletes the whole container and returns how many objects it held.
func (c *Container) DeleteAll(ctx context.Context) (int, error) {
	exists, err := c.Exists(ctx)
	if err != nil {
		return 0, err
	}
	if !exists {
		return 0, ErrNoBackup
	}
	if _, isFolder := c.Store.(folder); isFolder {
		// A folder that holds no backup is not deleted: it could be anything.
		logs, err := c.Logs(ctx, 0, math.MaxInt64)
		if err != nil {
			return 0, err
		}
		snapshots, err := c.Snapshots(ctx)
		if err != nil {
			return 0, err
		}
		if len(logs) == 0 && len(snapshots) == 0 {
			return 0, ErrNoBackup
		}
	}
	objects, err := c.List(ctx, "")
	if err != nil {
		return 0, err
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.Path)
	}
	return len(names), errors.Join(c.deleteAll(ctx, names), c.Remove(ctx))
}
