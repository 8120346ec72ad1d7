package tool

import (
	"context"
	"fmt"
	"strings"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// descriptions are how the tools put a backup's state into words.
var descriptions = map[string]string{
	state.Submitted:             "has been submitted",
	state.Running:               "has been started",
	state.RunningDifferentially: "is differential",
	state.Completed:             "has been completed",
	state.Aborted:               "has been aborted",
}

func (r *run) modify(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	o := r.options
	if !o.has("-d") && !o.has("-s") && !o.has("--active-snapshot-interval") && !o.has("--encryption-key-file") {
		return fatal("Backup error", "No changes were specified, nothing to do!")
	}
	interval, err := r.interval("-s", 0)
	if err != nil {
		return err
	}
	active, err := r.interval("--active-snapshot-interval", 0)
	if err != nil {
		return err
	}
	if o.has("-d") {
		target, err := r.destination("-d")
		if err != nil {
			return err
		}
		why := fmt.Sprintf("Could not create backup container at '%s'", o.text("-d"))
		if err := r.create(ctx, target, why); err != nil {
			return err
		}
	}
	return r.Store.Update(r.cluster, func(tx *state.Tx) error {
		b := tx.Backup(r.tag())
		switch {
		case b == nil:
			return fatal("Backup error", fmt.Sprintf("No backup exists on tag '%s'", r.tag()))
		case b.State == state.Aborted:
			return fatal("Backup error", fmt.Sprintf("Cannot modify aborted backup on tag '%s'", r.tag()))
		case !b.Runnable():
			return fatal("Backup error", fmt.Sprintf("Backup on tag '%s' is not runnable.", r.tag()))
		case o.has("--verify-uid") && o.text("--verify-uid") != b.UID:
			return fatal("Backup error", fmt.Sprintf(
				"UID verification failed, backup on tag '%s' is '%s' but '%s' was specified.", r.tag(), b.UID, o.text("--verify-uid")))
		}
		if o.has("-d") {
			b.URL = o.text("-d")
		}
		if o.has("-s") {
			b.IntervalSeconds = interval
		}
		if o.has("--active-snapshot-interval") && b.Snapshot != nil {
			b.Snapshot.IntervalSeconds = active
			b.Snapshot.EndTarget = b.Snapshot.Begin + active*state.VersionsPerSecond
		}
		return nil
	})
}

func (r *run) abort(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	err := r.Store.Update(r.cluster, func(tx *state.Tx) error {
		b := tx.Backup(r.tag())
		if b == nil || !b.Runnable() {
			return fatal("Backup unneeded request", fmt.Sprintf("ERROR: A backup was not running on tag `%s'", r.tag()))
		}
		b.State = state.Aborted
		tx.EndFirstSnapshot(b.UID, r.now())
		return nil
	})
	if err != nil {
		return err
	}
	r.printf("The backup on tag `%s' was successfully aborted.\n", r.tag())
	return nil
}

func (r *run) discontinue(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	err := r.Store.Update(r.cluster, func(tx *state.Tx) error {
		b := tx.Backup(r.tag())
		if b == nil || !b.Runnable() {
			return fatal("Backup unneeded request", fmt.Sprintf("ERROR: A backup in not running on tag `%s'", r.tag()))
		}
		if _, restorable := b.Restorable(); restorable {
			b.State = state.Completed
			tx.EndFirstSnapshot(b.UID, r.now())
			return nil
		}
		if b.StopWhenDone {
			return fatal("Backup duplicate request", fmt.Sprintf("ERROR: A backup on tag `%s' is already discontinued", r.tag()))
		}
		b.StopWhenDone = true
		return nil
	})
	if err != nil {
		return err
	}
	if r.options.has("-w") {
		r.printf("Discontinued and now waiting for the backup on tag `%s' to complete.\n", r.tag())
		_, err := r.await(ctx, r.tag(), false)
		return err
	}
	r.printf("The backup on tag `%s' was successfully discontinued.\n", r.tag())
	return nil
}

func (r *run) wait(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	b, err := r.await(ctx, r.tag(), r.options.has("-z"))
	if err != nil {
		return err
	}
	description := "has never been started"
	if b != nil {
		description = descriptions[b.State]
	}
	r.printf("The backup on tag `%s' %s.\n", r.tag(), description)
	return nil
}

func (r *run) pause(ctx context.Context) error  { return r.setPaused(ctx, true, "paused") }
func (r *run) resume(ctx context.Context) error { return r.setPaused(ctx, false, "resumed") }

func (r *run) setPaused(ctx context.Context, paused bool, word string) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	err := r.Store.Update(r.cluster, func(tx *state.Tx) error {
		tx.Paused = paused
		return nil
	})
	if err != nil {
		return err
	}
	r.printf("All backup agents have been %s.\n", word)
	return nil
}

func (r *run) tags(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	c, err := r.Store.Read(r.cluster)
	if err != nil {
		return err
	}
	for _, b := range c.Backups {
		r.printf("%s\n", b.Tag)
	}
	return nil
}

// cleanup tells how far the mutation logs in the database are behind, and erases the worst of them.
func (r *run) cleanup(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	limit := int64(3600)
	if r.options.has("--min-cleanup-seconds") {
		limit, _ = number(r.options.text("--min-cleanup-seconds"))
	}
	var out strings.Builder
	err := r.Store.Update(r.cluster, func(tx *state.Tx) error {
		now := tx.Version(r.now())
		var worst *state.Backup
		hours := func(b *state.Backup) float64 { return float64(now-b.LogEnd) / state.VersionsPerSecond / 3600 }
		for _, b := range tx.Backups {
			if b.State != state.Running && b.State != state.RunningDifferentially {
				continue
			}
			fmt.Fprintf(&out, "Found a Backup that is %.4f hours behind.\n", hours(b))
			if worst == nil || b.LogEnd < worst.LogEnd {
				worst = b
			}
		}
		if worst == nil {
			return nil
		}
		old := hours(worst)*3600 >= float64(limit)
		switch {
		case r.options.has("--delete-data") && old:
			worst.State = state.Aborted
			tx.EndFirstSnapshot(worst.UID, r.now())
			fmt.Fprintf(&out, "\nSuccessfully removed the tag that was %.4f hours behind.\n\n", hours(worst))
		case old:
			fmt.Fprintf(&out, "\nPassing `--delete-data' would delete the tag that is %.4f hours behind.\n\n", hours(worst))
		default:
			fmt.Fprintf(&out, "\nPassing `--delete-data' would not delete the tag that is %.4f hours behind. "+
				"Change `--min-cleanup-seconds' to adjust the cleanup threshold.\n\n", hours(worst))
		}
		return nil
	})
	r.printf("%s", out.String())
	return err
}
