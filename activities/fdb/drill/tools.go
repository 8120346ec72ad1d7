package drill

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/restore"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// errorUnreadable is the type of the error of a survey or check that FoundationDB did not answer. Retryable.
const errorUnreadable = "FDBUnreadable"

// Tools reads source and target of a FoundationDBDrill by FoundationDB's tools, and clears the target. It uses only the secrets
// of that object's namespace, and reads them for each call.
type Tools struct {
	// Reader reads at the API server itself.
	Reader client.Reader
	Runner *fdbtool.Runner
	// Locker is nil where no other operator changes backups.
	Locker tools.FDBLocker

	reads tools.Places
}

// reading limits the drills whose databases are read: each may take hours, and has some ten times maxRange of fdbtool in memory.
var reading = tools.Limit{All: 3, Namespace: 1}

// Register registers the activities with a worker under their wire names. Clear is one of the commands of tools.Tools.
func (t *Tools) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.SurveyFDBDrill, t.Survey)
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.CheckFDBDrill, t.Check)
}

// reach reads the drill and what it takes to run tools for its target. It returns nil if there is no such drill. The caller
// closes the reach.
func (t *Tools) reach(ctx context.Context, ref contract.ObjectRef) (*Objects, *restore.Reach, *contract.FDBFailure, error) {
	o, err := Gather(ctx, t.Reader, ref)
	if err != nil || o.Drill == nil {
		return nil, nil, nil, err
	}
	restores := &restore.Tools{Reader: t.Reader, Runner: t.Runner}
	reach, trouble, err := restores.ReachFor(ctx, o.NewRestore())
	return o, reach, trouble, err
}

func unreadable(trouble *contract.FDBFailure) error {
	return temporal.NewApplicationError(trouble.Message, errorUnreadable)
}

// Survey finds out whether the target is empty, and records what the source holds in the ranges at its present version. It
// changes nothing.
func (t *Tools) Survey(ctx context.Context, step contract.FDBDrillStep) (survey contract.FDBDrillSurvey, err error) {
	defer activities.Beating(ctx)()
	if !t.reads.Begin(step.Namespace, reading) {
		return survey, &activities.NotYetError{For: "the databases of other drills to be read"}
	}
	defer t.reads.End(step.Namespace)
	o, reach, trouble, err := t.reach(ctx, step.Ref)
	defer reach.Done(&err)
	switch {
	case err != nil || o == nil || !o.stays(): // nobody wants it, and a target that goes along cannot be read
		return survey, err
	case trouble != nil:
		return survey, unreadable(trouble)
	}
	database, trouble := reach.Database(ctx)
	switch {
	case trouble != nil:
		return survey, unreadable(trouble)
	case database.LockUID != "":
		survey.Refused = "the target is locked, as it is during a restore: " + database.LockUID
		return survey, nil
	}
	some, trouble := reach.Holds(ctx, restore.Everything)
	switch {
	case trouble != nil:
		return survey, unreadable(trouble)
	case some:
		survey.Refused = "the target holds data, and a drill restores only into an empty cluster"
		return survey, nil
	case len(o.ranges()) == 0:
		survey.Unread = "what the backup holds is not known: name ranges in spec.ranges"
		return survey, nil
	case !o.recording():
		survey.Unread = "the source is read only while the backup runs, and for its present version"
		return survey, nil
	}
	err = o.record(ctx, reach, &survey)
	return survey, errors.Join(err, ctx.Err())
}

// record reads the source in one transaction. If it does not answer, that is a finding, not an error.
func (o *Objects) record(ctx context.Context, reach *restore.Reach, survey *contract.FDBDrillSurvey) (err error) {
	source, trouble, err := reach.OpenSource(ctx)
	if source != nil {
		defer func() { err = errors.Join(err, source.Close()) }()
	}
	if err != nil {
		return err
	}
	if trouble == nil {
		run := func(ctx context.Context, operation fdbtool.Operation, args []string) ([]byte, *contract.FDBFailure) {
			return tools.RunTool(ctx, source, operation, args)
		}
		survey.Version, survey.Records, trouble = snapshot(ctx, run, o.ranges())
	}
	switch {
	case trouble == nil:
	case trouble.Class == contract.FDBClassTooMuch:
		survey.Unread = "the ranges hold too much to be read at one version: name smaller ones in spec.ranges"
	default:
		survey.Unread = "the source could not be read: " + trouble.Message
	}
	return nil
}

// Check reads the target: the ranges that have records, and how much there is in all.
func (t *Tools) Check(ctx context.Context, step contract.FDBDrillStep) (check contract.FDBDrillCheck, err error) {
	defer activities.Beating(ctx)()
	if !t.reads.Begin(step.Namespace, reading) {
		return check, &activities.NotYetError{For: "the databases of other drills to be read"}
	}
	defer t.reads.End(step.Namespace)
	o, reach, trouble, err := t.reach(ctx, step.Ref)
	defer reach.Done(&err)
	switch {
	case err != nil || o == nil || !o.stays():
		return check, err
	case trouble != nil:
		return check, unreadable(trouble)
	case o.owner() != o.Drill.Status.Target:
		check.Unmade = "the target is another database now"
		return check, nil
	}
	limited, cancel := tools.Reserve(ctx)
	defer cancel()
	all := everything()
	var counted bool
	for _, want := range o.Drill.Status.Records {
		if want.Digest == "" {
			continue
		}
		record := contract.FDBRangeRecord{Name: want.Name, Start: want.Start, End: want.End}
		found, trouble := scan(limited, reach.Run, record)
		if trouble != nil {
			if limited.Err() == nil {
				return check, unreadable(trouble)
			}
			record.Unread = "there was no time to read it"
			check.Records = append(check.Records, record)
			continue
		}
		if record.Start == all.Start && record.End == all.End {
			check.Keys, check.Bytes, counted = found.keys, found.bytes, true
		}
		check.Records = append(check.Records, found.record(record))
	}
	if !counted {
		found, trouble := scan(limited, reach.Run, all)
		switch {
		case trouble == nil:
			check.Keys, check.Bytes = found.keys, found.bytes
		case limited.Err() == nil:
			return check, unreadable(trouble)
		default:
			check.Uncounted = "there was no time to count them"
		}
	}
	return check, nil // also late: the caller learns what was read
}

// Clear clears the target if what is in it is what the drill has restored. It may be repeated after any end: it reads the state
// first.
func (t *Tools) Clear(ctx context.Context, command contract.FDBCommand) (outcome contract.FDBOutcome, err error) {
	defer activities.Beating(ctx)()
	o, reach, trouble, err := t.reach(ctx, command.Ref)
	defer reach.Done(&err)
	switch {
	case err != nil:
		return outcome, err
	case o == nil || o.unclear(command):
		return contract.FDBOutcome{Stale: true}, nil
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}, nil
	}
	ctx, cancel := tools.Reserve(ctx)
	defer cancel()
	do := func(ctx context.Context) (contract.FDBOutcome, error) {
		present, err := Gather(ctx, t.Reader, command.Ref) // the lock may have been waited for
		if err != nil || present.Drill == nil || present.unclear(command) {
			return contract.FDBOutcome{Stale: err == nil}, err
		}
		return clearTarget(ctx, reach, command.Tag), nil
	}
	if t.Locker == nil {
		return do(ctx)
	}
	return tools.UnderLock(ctx, t.Locker, reach.Session, do)
}

// unclear reports whether the target must not be cleared: the drill has no verdict yet, its restore is not gone, or the target is
// not the one that it has restored into, with the label.
func (o *Objects) unclear(command contract.FDBCommand) bool {
	status := &o.Drill.Status
	switch {
	case command.Operation != contract.FDBDrillClear || status.Begun == nil || status.Tag == "" || status.Tag != command.Tag:
		return true
	case o.stays() && status.Concluded == nil:
		return true
	}
	return o.Restore != nil || o.lost() != "" || o.owner() != status.Target || status.Ended != nil
}

// clearTarget clears all keys, if the database knows the drill's restore: only into an empty database it was started.
func clearTarget(ctx context.Context, reach *restore.Reach, tag string) contract.FDBOutcome {
	progress, trouble := reach.Status(ctx, tag)
	switch {
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}
	case progress == nil:
		return contract.FDBOutcome{Done: true} // it was never started, so what is there is somebody else's
	case !restoretool.Over(progress.State):
		if _, trouble := reach.Run(ctx, fdbtool.RestoreAbort, []string{"abort", "-t", tag}); trouble != nil {
			return contract.FDBOutcome{Failure: trouble}
		}
	}
	args := append([]string{"--exec", "writemode on; clearrange " + restore.Everything}, restore.AnswerLimit...)
	if _, trouble := reach.Run(ctx, fdbtool.ClearKeys, args); trouble != nil {
		return contract.FDBOutcome{Failure: trouble}
	}
	some, trouble := reach.Holds(ctx, restore.Everything)
	switch {
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}
	case some:
		return contract.FDBOutcome{Failure: tools.OtherFailure("%s",
			fdb.Bound("the target was cleared, and holds data again: something writes there", tools.MaxFDBMessage))}
	}
	return contract.FDBOutcome{Done: true}
}
