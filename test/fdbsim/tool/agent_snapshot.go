package tool

import (
	"context"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// maxTick is how much work a moment between two looks can be at most: while no agent runs, no work is done.
const maxTick = time.Second

// snapshot writes the parts of the snapshot that are due, and its end.
func (j *backupJob) snapshot(ctx context.Context) error {
	if j.control.StopSnapshots {
		return j.update(func(_ *state.Tx, b *state.Backup) error {
			b.Snapshot.Tick = time.Now()
			return nil
		})
	}
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	for {
		p, err := j.duePart()
		if err != nil || p == nil {
			return err
		}
		c, err := j.run.open(p.url)
		if err != nil {
			return j.problem(rangeTask, err)
		}
		if p.complete {
			written, err := c.WriteSnapshot(ctx, p.files)
			if err != nil {
				return j.problem(snapshotTask, err)
			}
			return j.complete(p.snapshot, written.End)
		}
		file, err := c.WriteRange(ctx, p.snapshot, p.version, p.part, p.keys)
		if err != nil {
			return j.problem(rangeTask, err)
		}
		if err := j.written(p.snapshot, file); err != nil {
			return err
		}
	}
}

// due is a part of a snapshot that is to be written, or, when all are, its end.
type due struct {
	url      string
	snapshot int64 // its begin
	version  int64
	part     state.Range
	keys     []state.KeyValue
	complete bool
	files    []state.RangeFile
}

// duePart finds out what is to be written by now; nil for nothing. The keys are those of one version.
func (j *backupJob) duePart() (*due, error) {
	var found *due
	err := j.update(func(tx *state.Tx, b *state.Backup) error {
		s := b.Snapshot
		if s.Done {
			return nil
		}
		if b.FirstEnd == 0 {
			if !s.Tick.IsZero() {
				s.Worked += min(time.Since(s.Tick), maxTick).Seconds()
			}
			s.Tick = time.Now()
		}
		done := len(s.Files)
		if done == len(s.Parts) {
			found = &due{url: b.URL, snapshot: s.Begin, complete: true, files: s.Files}
			return nil
		}
		if float64(done+1) > j.progress(tx.Cluster, b)*float64(len(s.Parts)) {
			return nil
		}
		data, err := tx.Data()
		if err != nil {
			return err
		}
		data.Last = max(data.Last, tx.Version(j.now()))
		found = &due{
			url: b.URL, snapshot: s.Begin, version: data.Last, part: s.Parts[done],
			keys: append([]state.KeyValue{}, data.In(s.Parts[done])...),
		}
		return nil
	})
	return found, err
}

// progress is how much of a snapshot should be written by now, from 0 to 1. The first goes as fast as the control lets it, the
// later ones take their interval.
func (j *backupJob) progress(c *state.Cluster, b *state.Backup) float64 {
	s := b.Snapshot
	if b.FirstEnd == 0 && s.IntervalSeconds == 0 {
		return s.Worked / j.control.FirstSnapshot.Seconds()
	}
	return expected(c, s, j.now()) / 100
}

func (j *backupJob) written(snapshot int64, file state.RangeFile) error {
	return j.update(func(_ *state.Tx, b *state.Backup) error {
		s := b.Snapshot
		if s.Begin != snapshot {
			return nil
		}
		s.Files = append(s.Files, file)
		s.LastDispatch, s.ShardsBehind = file.Version, int64(len(s.Parts)-len(s.Files))
		b.RangeBytes += file.Bytes
		return nil
	})
}

// complete ends a snapshot and, in a backup that goes on, begins the next.
func (j *backupJob) complete(snapshot, end int64) error {
	return j.update(func(tx *state.Tx, b *state.Backup) error {
		if b.Snapshot.Begin != snapshot {
			return nil
		}
		b.SnapshotEnd = end
		if b.FirstEnd == 0 {
			b.FirstEnd = end
		}
		if b.StopWhenDone {
			b.Snapshot.Done = true
			return nil
		}
		data, err := tx.Data()
		if err != nil {
			return err
		}
		b.Snapshot = newSnapshot(b, data, max(tx.Version(j.now()), end+1), max(b.IntervalSeconds, 1))
		return nil
	})
}
