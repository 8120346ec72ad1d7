package tool

import (
	"bytes"
	"context"
	"errors"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// restoreTask is the name of the real agents' task, as status shows it.
const restoreTask = "restore_range_data"

// restoreJob is an agent's work on one restore.
type restoreJob struct {
	*worker
	control  state.Control
	tag, uid string
}

func (j *restoreJob) update(change func(tx *state.Tx, r *state.Restore) error) error {
	return j.Store.Update(j.cluster, func(tx *state.Tx) error {
		r := tx.Restore(j.tag)
		if r == nil || r.UID != j.uid || !r.Runnable() {
			return errGone
		}
		return change(tx, r)
	})
}

// step goes one step further: from queued to starting, to running, then file by file, at last through the logs.
func (j *restoreJob) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	var now state.Restore
	err := j.update(func(_ *state.Tx, r *state.Restore) error {
		if !r.Tick.IsZero() {
			r.Worked += min(time.Since(r.Tick), maxTick).Seconds()
		}
		r.Tick = time.Now()
		now = *r
		if r.State == state.RestoreQueued {
			r.State = state.RestoreStarting
		}
		return nil
	})
	if err == nil && now.State != state.RestoreQueued {
		err = j.advance(ctx, now)
	}
	if err != nil && !errors.Is(err, errGone) {
		return j.problem(err)
	}
	return nil
}

func (j *restoreJob) problem(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = container.ErrTimeout
	}
	problem := j.update(func(_ *state.Tx, r *state.Restore) error {
		if r.Error == nil || r.Error.Message != err.Error() {
			r.Error = &state.Problem{At: j.now(), Message: err.Error(), Task: restoreTask}
		}
		return nil
	})
	if errors.Is(problem, errGone) {
		return nil
	}
	return problem
}

func (j *restoreJob) advance(ctx context.Context, now state.Restore) error {
	c, err := j.run.open(now.URL)
	if err != nil {
		return err
	}
	set, err := c.RestorableSet(ctx, now.Version, now.Filter())
	if err != nil {
		return err
	}
	if set == nil {
		return container.ErrMissingData
	}
	blocks := set.Blocks(now.Ranges)
	if now.State == state.RestoreStarting {
		return j.update(func(_ *state.Tx, r *state.Restore) error {
			r.State, r.Blocks, r.Files = state.RestoreRunning, len(blocks), len(set.Ranges)+len(set.Logs)
			r.CurrentVersion, r.FirstConsistent = set.Begin, set.End
			return nil
		})
	}
	fraction := now.Worked / j.control.Restore.Seconds()
	for done := now.BlocksDone; done < len(blocks); done++ {
		if fraction < float64(done+1)/float64(len(blocks)+1) {
			return nil
		}
		if err := j.block(ctx, c, blocks[done]); err != nil {
			return err
		}
	}
	if fraction < 1 {
		return nil
	}
	mutations, err := c.Mutations(ctx, set)
	if err != nil {
		return err
	}
	return j.finish(set, mutations)
}

// block writes the keys of one file into the database.
func (j *restoreJob) block(ctx context.Context, c *container.Container, file state.RangeFile) error {
	keys, err := c.Keys(ctx, file)
	if err != nil {
		return err
	}
	return j.update(func(tx *state.Tx, r *state.Restore) error {
		data, err := tx.Data()
		if err != nil {
			return err
		}
		for _, kv := range keys {
			if key, wanted := r.Target(kv.Key); wanted {
				data.Change(tx.Version(j.now()), state.Mutation{Key: key, Value: kv.Value})
				r.BytesWritten += int64(len(kv.Key) + len(kv.Value))
			}
		}
		r.BlocksDone++
		r.Error = nil
		return nil
	})
}

// finish applies the logs: each change only to the keys of files that were read before it was made.
func (j *restoreJob) finish(set *container.Set, mutations []state.Mutation) error {
	return j.update(func(tx *state.Tx, r *state.Restore) error {
		data, err := tx.Data()
		if err != nil {
			return err
		}
		for _, m := range mutations {
			for _, file := range set.Ranges {
				if m.Version <= file.Version {
					continue
				}
				for _, change := range j.within(r, m, file.Range) {
					data.Change(tx.Version(j.now()), change)
				}
			}
		}
		r.State, r.CurrentVersion, r.ApplyVersionLag, r.Error = state.RestoreCompleted, r.Version, 0, nil
		tx.LockUID = ""
		return forget(tx)
	})
}

// within is what a mutation changes in a file's range and in what the restore wants, as mutations of the target.
func (j *restoreJob) within(r *state.Restore, m state.Mutation, file state.Range) []state.Mutation {
	if m.End == nil {
		key, wanted := r.Target(m.Key)
		if !wanted || !file.Contains(m.Key) {
			return nil
		}
		return []state.Mutation{{Key: key, Value: m.Value}}
	}
	var changes []state.Mutation
	for _, wanted := range r.Ranges {
		begin, end := m.Key, m.End
		for _, limit := range []state.Range{file, wanted} {
			begin, end = later(begin, limit.Begin), earlier(end, limit.End)
		}
		if bytes.Compare(begin, end) < 0 {
			renamed := r.RenameRange(state.Range{Begin: begin, End: end})
			changes = append(changes, state.Mutation{Key: renamed.Begin, End: renamed.End})
		}
	}
	return changes
}

func later(a, b []byte) []byte {
	if bytes.Compare(a, b) >= 0 {
		return a
	}
	return b
}

func earlier(a, b []byte) []byte {
	if bytes.Compare(a, b) <= 0 {
		return a
	}
	return b
}
