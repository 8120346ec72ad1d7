package tool

import (
	"context"
	"fmt"
	"os"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

func (r *run) restoreStart(ctx context.Context) error {
	o := r.options
	wanted, filtered, err := r.wantedRanges()
	if err != nil {
		return err
	}
	if o.text("--dest-cluster-file") == "" {
		return exit(1, "Restore destination cluster file must be specified explicitly.")
	}
	if _, err := os.Stat(o.text("--dest-cluster-file")); err != nil {
		return exit(1, fmt.Sprintf("Restore destination cluster file '%s' does not exist.", o.text("--dest-cluster-file")))
	}
	if o.has("-v") && o.has("--timestamp") {
		return fatal("Restore error", "Restore target version and target timestamp cannot both be specified")
	}
	version := int64(-1)
	if o.has("-v") {
		version, _ = number(o.text("-v"))
	}
	var clock func(int64) time.Time
	if o.has("--timestamp") {
		keeper, at, err := r.origin(ctx)
		if err != nil {
			return err
		}
		version, clock = keeper.Version(at), keeper.Time
		r.printf("Timestamp '%s' resolves to version %d\n", o.text("--timestamp"), version)
	}
	source, err := r.destination("-r")
	if err != nil {
		return err
	}
	if err := r.connectTarget(ctx); err != nil {
		return err
	}
	if version < 0 {
		r.printf("No restore target version given, will use maximum restorable version from backup description.\n")
		d, err := source.Describe(ctx, false, nil)
		if err != nil {
			return failed(err)
		}
		if d.MaxRestorable == nil {
			return fatal("Restore error", "The specified backup is not restorable to any version.", "ERROR: Restore error")
		}
		version = *d.MaxRestorable
		r.printf("Ussing target restore version %d\n", version)
	}
	restore := &state.Restore{
		Tag: r.tag(), UID: container.NewUID(), State: state.RestoreQueued, URL: source.URL, Version: version, Ranges: wanted,
		CurrentVersion: -1, Filtered: filtered,
	}
	if restore.AddPrefix, err = ParseKey(o.text("--add-prefix")); err != nil {
		return fatal("Restore error", "ERROR: Invalid prefix")
	}
	if restore.RemovePrefix, err = ParseKey(o.text("--remove-prefix")); err != nil {
		return fatal("Restore error", "ERROR: Invalid prefix")
	}
	if o.has("-n") {
		return r.trial(ctx, source, restore)
	}
	return r.queue(ctx, source, restore, clock)
}

// wantedRanges are those of -k, or all; filtered says that they are fewer than a backup of everything holds.
func (r *run) wantedRanges() (wanted []state.Range, filtered bool, err error) {
	wanted, err = r.ranges()
	if err != nil || len(wanted) > 0 {
		return wanted, true, err
	}
	user, system := defaultRanges()[:1], defaultRanges()[1:]
	switch {
	case r.options.has("--user-data") && !r.options.has("--system-metadata"):
		return user, true, nil
	case r.options.has("--system-metadata") && !r.options.has("--user-data"):
		return system, true, nil
	default:
		return defaultRanges(), false, nil
	}
}

// origin opens the cluster whose clock resolves --timestamp.
func (r *run) origin(ctx context.Context) (*state.Cluster, time.Time, error) {
	text, file := r.options.text("--timestamp"), r.options.text("--orig-cluster-file")
	if file == "" {
		return nil, time.Time{}, fatal("Restore error",
			fmt.Sprintf("An original cluster file must be given in order to resolve restore target timestamp '%s'", text))
	}
	if _, err := os.Stat(file); err != nil {
		return nil, time.Time{}, fatal("Restore error", fmt.Sprintf("Original source database cluster file '%s' does not exist.", file))
	}
	at, err := moment(text)
	if err != nil {
		return nil, at, err
	}
	name, err := r.openCluster(file, true)
	if err != nil {
		return nil, at, err
	}
	if err := r.reach(ctx, name); err != nil {
		return nil, at, err
	}
	keeper, err := r.Store.Read(name)
	return keeper, at, err
}

// trial is start -n.
func (r *run) trial(ctx context.Context, source *container.Container, restore *state.Restore) error {
	version := restore.Version
	set, err := source.RestorableSet(ctx, version, restore.Filter())
	if err != nil {
		return failed(err)
	}
	if set == nil {
		return fatal("Invalid restore version",
			fmt.Sprintf("Insufficient data to restore to version %d.  Describe backup for more information.", version),
			"ERROR: Invalid restore version")
	}
	r.printf("Backup can be used to restore to version %d\n", version)
	return nil
}

// queue checks everything, locks the database and leaves the restore to the agents. On a database that is locked it hangs.
func (r *run) queue(
	ctx context.Context, source *container.Container, restore *state.Restore, clock func(int64) time.Time,
) error {
	d, err := source.Describe(ctx, true, nil)
	if err != nil {
		return failed(err)
	}
	r.printf("Backup Description\n%s", d.Text(clock))
	set, err := source.RestorableSet(ctx, restore.Version, restore.Filter())
	if err != nil {
		return failed(err)
	}
	if set == nil {
		return fatal("Invalid restore version",
			fmt.Sprintf("ERROR: Restore version %d is not possible from %s", restore.Version, source.URL),
			"ERROR: Invalid restore version")
	}
	r.printf("Restoring backup to version: %d\n", restore.Version)
	for {
		locked := false
		err := r.Store.Update(r.cluster, func(tx *state.Tx) error {
			locked = false
			if old := tx.Restore(restore.Tag); old != nil && old.Runnable() {
				return failed(fmt.Errorf("Restore duplicate request")) //nolint:staticcheck // it is the tool's text
			}
			data, err := tx.Data()
			if err != nil {
				return err
			}
			for _, wanted := range restore.Ranges {
				if len(data.In(restore.RenameRange(wanted))) > 0 {
					return failed(fmt.Errorf("Attempted to restore into a non-empty destination database")) //nolint:staticcheck // likewise
				}
			}
			if locked = tx.LockUID != ""; locked {
				return nil
			}
			tx.LockUID = restore.UID
			tx.SetRestore(restore)
			return nil
		})
		if err != nil {
			return err
		}
		if !locked {
			break
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return err
		}
	}
	if !r.options.has("-w") {
		return nil
	}
	end, err := r.follow(ctx, restore.Tag)
	if err != nil {
		return err
	}
	if end.State != state.RestoreCompleted {
		return exit(1)
	}
	r.printf("Restored to version %d\n", restore.Version)
	return nil
}
