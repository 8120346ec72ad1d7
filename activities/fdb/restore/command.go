package restore

import (
	"context"
	"strconv"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/activities/fdbtool"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// Command starts or aborts a restore, unless that is done already or stale. It may be repeated after any end: it reads the state
// first, and again if the result of the command is unknown. A restore that was ever started is never started again.
func (t *Tools) Command(ctx context.Context, command contract.FDBCommand) (outcome contract.FDBOutcome, err error) {
	defer activities.Beating(ctx)()
	reach, trouble, err := t.reach(ctx, command.Ref)
	defer reach.Done(&err)
	switch {
	case err != nil:
		return contract.FDBOutcome{}, err
	case reach == nil || reach.stale(command):
		return contract.FDBOutcome{Stale: true}, nil
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}, nil
	}
	attempt := &restoreAttempt{Reach: reach, command: command}
	ctx, cancel := tools.Reserve(ctx)
	defer cancel()
	if t.Locker == nil {
		return attempt.run(ctx)
	}
	if outcome, settled := attempt.settled(ctx); settled {
		return outcome, nil
	}
	return tools.UnderLock(ctx, t.Locker, reach.Session, attempt.run)
}

// stale reports whether the command does not fit the object as it is. Commands are run only for the restore of the plan, and only
// in the database that it was planned for. An abort is right whatever the spec says.
func (r *Reach) stale(command contract.FDBCommand) bool {
	plan, object := r.Object.Status.Plan, r.Object
	if plan == nil || plan.Tag != command.Tag || plan.Tag != Tag(object) {
		return true
	}
	if owner := r.Cluster.Owner(); owner != "" && owner != plan.Destination {
		return true
	}
	switch command.Operation {
	case contract.FDBRestoreAbort:
		return false
	case contract.FDBRestoreStart:
		return object.Generation != command.Generation || !object.DeletionTimestamp.IsZero() ||
			object.Spec.RestoreState == fdbv1alpha1.RestoreStateStopped || plan.URL != command.URL
	}
	return true
}

// restoreAttempt is one attempt at a command.
type restoreAttempt struct {
	*Reach
	command contract.FDBCommand
	// noAgents: no agent has shown that it lives.
	noAgents bool
}

// done reads the state of the restore, and reports whether it is already what the command brings about.
func (a *restoreAttempt) done(ctx context.Context) (bool, *contract.FDBFailure) {
	restore, trouble := a.Status(ctx, a.command.Tag)
	if trouble != nil {
		return false, trouble
	}
	if a.command.Operation == contract.FDBRestoreStart {
		return restore != nil, nil // every state means that it was started
	}
	return restore == nil || restoretool.Over(restore.State), nil
}

// settled reads the state, and returns the outcome unless the command has to run. On a locked database a start would hang.
func (a *restoreAttempt) settled(ctx context.Context) (contract.FDBOutcome, bool) {
	done, trouble := a.done(ctx)
	switch {
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}, true
	case done:
		return contract.FDBOutcome{Done: true}, true
	case a.command.Operation != contract.FDBRestoreStart:
		return contract.FDBOutcome{}, false
	}
	if trouble := a.unready(); trouble != nil {
		return contract.FDBOutcome{Stale: true, Failure: trouble}, true
	}
	database, trouble := a.Database(ctx)
	switch {
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}, true
	case !database.LockKnown:
		return contract.FDBOutcome{Failure: tools.OtherFailure("the database does not report whether it is locked")}, true
	case database.LockUID != "":
		return contract.FDBOutcome{Failure: &contract.FDBFailure{
			Class: contract.FDBClassLocked,
			Message: fdb.Bound("the destination is locked by "+database.LockUID+", as it is during another restore: wait for its end, "+
				"or unlock the database", tools.MaxFDBMessage),
		}}, true
	}
	a.noAgents = database.Agents == 0
	return contract.FDBOutcome{}, false
}

// run runs the command if it is due. The state after it counts, not its exit code.
func (a *restoreAttempt) run(ctx context.Context) (contract.FDBOutcome, error) {
	outcome, settled := a.settled(ctx)
	if settled {
		return outcome, nil
	}
	operation, args := a.arguments()
	_, trouble := a.Run(ctx, operation, args)
	// The worker may be stopping, or the time be over: the caller must still learn the result of the command.
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), fdbtool.StatusLimit)
	defer cancel()
	done, unread := a.done(fresh)
	switch {
	case done:
		return contract.FDBOutcome{Done: true, NoAgents: a.noAgents}, nil
	case trouble != nil:
	case unread != nil:
		trouble = unread
	default:
		trouble = tools.OtherFailure("fdbrestore succeeded, but the state of tag %s is not what it should be", a.command.Tag)
	}
	return contract.FDBOutcome{Failure: trouble}, nil
}

// arguments returns those of the command. The version is always given: without one the tool restores up to where the container
// was when it was first described.
func (a *restoreAttempt) arguments() (fdbtool.Operation, []string) {
	if a.command.Operation == contract.FDBRestoreAbort {
		return fdbtool.RestoreAbort, []string{"abort", "-t", a.command.Tag}
	}
	plan := a.Object.Status.Plan
	args := []string{"start", "-r", fdb.CleanURL(plan.URL), "-t", plan.Tag, "-v", strconv.FormatInt(plan.Version, 10)}
	for _, keys := range a.KeyRanges() {
		args = append(args, "-k", fdb.RangeArgument(keys))
	}
	return fdbtool.RestoreStart, args
}
