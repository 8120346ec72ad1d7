package tool

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// Names of the real agents' tasks, as status shows them.
const (
	rangeTask    = "file_backup_write_range_5.2"
	logTask      = "file_backup_write_logs_5.2"
	snapshotTask = "file_backup_write_snapshot_manifest_5.2"
)

const (
	// userParts is into how many files the user's keys are written in a snapshot.
	userParts = 4
	// maxCatchUp is how many log files are written at most for what was not logged for long.
	maxCatchUp = 24
)

// errGone says that the backup was stopped or replaced meanwhile.
var errGone = errors.New("the backup does not run any more")

// backupJob is an agent's work on one backup.
type backupJob struct {
	*worker
	control  state.Control
	tag, uid string
}

// update changes the backup, if it still runs.
func (j *backupJob) update(change func(tx *state.Tx, b *state.Backup) error) error {
	return j.Store.Update(j.cluster, func(tx *state.Tx) error {
		b := tx.Backup(j.tag)
		if b == nil || b.UID != j.uid || !b.Runnable() {
			return errGone
		}
		return change(tx, b)
	})
}

// step goes as far with the backup as there is something to do.
func (j *backupJob) step(ctx context.Context) error {
	err := j.begin()
	if err == nil {
		err = j.logs(ctx)
	}
	if err == nil {
		err = j.snapshot(ctx)
	}
	if err == nil {
		err = j.finish()
	}
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// nothingDue says whether a look is enough to see that there is nothing to do for a backup.
func (j *backupJob) nothingDue(c *state.Cluster, b *state.Backup) bool {
	if b.State != state.RunningDifferentially || b.Snapshot == nil {
		return false
	}
	logged := j.control.StopLogs || c.Version(j.now())-b.LogEnd < j.control.LogFile.Microseconds()
	next := float64(len(b.Snapshot.Files)+1) / float64(max(len(b.Snapshot.Parts), 1))
	written := j.control.StopSnapshots || (next <= 1 && j.progress(c, b) < next)
	return logged && written
}

// begin takes a submitted backup up.
func (j *backupJob) begin() error {
	return j.update(func(tx *state.Tx, b *state.Backup) error {
		if b.State != state.Submitted {
			return nil
		}
		if j.control.HoldSubmitted {
			return errGone
		}
		data, err := tx.Data()
		if err != nil {
			return err
		}
		b.State = state.Running
		b.LogBegin = max(tx.Version(j.now()), data.Last+1)
		b.LogEnd = b.LogBegin
		b.Snapshot = newSnapshot(b, data, b.LogBegin, b.InitialSeconds)
		tx.FirstSnapshots = append(tx.FirstSnapshots, state.Interval{Tag: b.Tag, UID: b.UID, Begin: j.now()})
		return nil
	})
}

// newSnapshot plans a snapshot: which parts it has, and when it is to end.
func newSnapshot(b *state.Backup, data *state.Data, begin, interval int64) *state.Snapshot {
	s := &state.Snapshot{
		Begin: begin, EndTarget: begin + interval*state.VersionsPerSecond, IntervalSeconds: interval, LastDispatch: begin,
	}
	for _, r := range b.Ranges {
		keys := data.In(r)
		from := r.Begin
		for i := 1; i < userParts && len(keys) >= userParts; i++ {
			at := keys[i*len(keys)/userParts].Key
			s.Parts = append(s.Parts, state.Range{Begin: from, End: at})
			from = at
		}
		s.Parts = append(s.Parts, state.Range{Begin: from, End: r.End})
	}
	s.ShardsBehind = int64(len(s.Parts))
	return s
}

// problem writes down that a task did not succeed. It will be tried again.
func (j *backupJob) problem(task string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = container.ErrTimeout
	}
	return j.update(func(_ *state.Tx, b *state.Backup) error {
		now := j.now()
		for i := range b.Errors {
			if old := &b.Errors[i]; old.Task == task && old.Message == err.Error() {
				if now.Sub(old.At) >= time.Second {
					old.At = now
				}
				return nil
			}
		}
		b.Errors = append(b.Errors, state.Problem{At: now, Message: err.Error(), Task: task})
		return nil
	})
}

// logs writes the log files that are due.
func (j *backupJob) logs(ctx context.Context) error {
	if j.control.StopLogs {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	for {
		var begin, end int64
		var mutations []state.Mutation
		var url string
		err := j.update(func(tx *state.Tx, b *state.Backup) error {
			now := tx.Version(j.now())
			length := max(j.control.LogFile.Microseconds(), (now-b.LogEnd)/maxCatchUp)
			if now-b.LogEnd < length {
				return nil
			}
			data, err := tx.Data()
			if err != nil {
				return err
			}
			begin, end, url = b.LogEnd, b.LogEnd+length, b.URL
			data.Last = max(data.Last, end-1)
			mutations = data.Since(begin, end)
			return nil
		})
		if err != nil || end == 0 {
			return err
		}
		c, err := j.run.open(url)
		var bytes int64
		if err == nil {
			bytes, err = c.WriteLog(ctx, begin, end, mutations)
		}
		if err != nil {
			return j.problem(logTask, err)
		}
		if err := j.update(func(tx *state.Tx, b *state.Backup) error {
			b.LogEnd, b.LogBytes = end, b.LogBytes+bytes
			return forget(tx)
		}); err != nil {
			return err
		}
	}
}

// forget drops the mutations that all backups have logged.
func forget(tx *state.Tx) error {
	data, err := tx.Data()
	if err != nil || len(data.Mutations) == 0 {
		return err
	}
	before := data.Last + 1
	for _, b := range tx.Backups {
		if b.Runnable() && b.State != state.Submitted {
			before = min(before, b.LogEnd)
		}
	}
	data.Forget(before)
	return nil
}

// finish moves a backup on whose first snapshot and logs are there.
func (j *backupJob) finish() error {
	return j.update(func(tx *state.Tx, b *state.Backup) error {
		if _, restorable := b.Restorable(); !restorable {
			return nil
		}
		if b.StopWhenDone {
			b.State = state.Completed
		} else {
			b.State = state.RunningDifferentially
		}
		tx.EndFirstSnapshot(b.UID, j.now())
		return nil
	})
}
