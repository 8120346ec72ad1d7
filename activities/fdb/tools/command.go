package tools

import (
	"context"
	"encoding/json"
	"strings"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// Command runs a command that changes something, unless it is done already or stale. It may be repeated after any end: it reads
// the state first, and again if the result of the command is unknown.
func (t *Tools) Command(ctx context.Context, command contract.FDBCommand) (outcome contract.FDBOutcome, err error) {
	if run := t.Others[command.Operation]; run != nil {
		return run(ctx, command)
	}
	defer activities.Beating(ctx)()
	reach, trouble, err := t.reach(ctx, command.Ref)
	defer reach.close(&err)
	switch {
	case err != nil:
		return contract.FDBOutcome{}, err
	case reach == nil || stale(command, reach.Objects):
		return contract.FDBOutcome{Stale: true}, nil
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}, nil
	}
	if trouble := reach.unready(command.Operation); trouble != nil {
		return contract.FDBOutcome{Stale: true, Failure: trouble}, nil
	}
	attempt := &attempt{reach: reach, command: command, desired: reach.Desired()}
	ctx, cancel := Reserve(ctx)
	defer cancel()
	if t.Locker == nil {
		return attempt.run(ctx)
	}
	if outcome, settled := attempt.settled(ctx); settled {
		return outcome, nil
	}
	return UnderLock(ctx, t.Locker, attempt.Session, attempt.run)
}

// UnderLock runs a command while it holds the lock that keeps other operators from changing the database's backups.
func UnderLock(ctx context.Context, locker FDBLocker, session *fdbtool.Session,
	run func(context.Context) (contract.FDBOutcome, error),
) (outcome contract.FDBOutcome, err error) {
	held := false
	lockErr := locker.Locked(ctx, session.ClusterFile(), func(ctx context.Context) error {
		held = true
		outcome, err = run(ctx)
		return err
	})
	if lockErr != nil && !held {
		return contract.FDBOutcome{
			Failure: OtherFailure("the FoundationDB operator's lock could not be acquired: %s", session.Redact(lockErr.Error())),
		}, nil
	}
	return outcome, err // a lock that could not be released expires
}

// stale reports whether the spec has changed since the command was decided. An abort is right whatever the spec says. So is a
// resume while the object is being deleted: it also lets the agents of other backups run again.
func stale(command contract.FDBCommand, objects *gather.Objects) bool {
	if command.Operation == contract.FDBAbort {
		return false
	}
	deleted := !objects.Object.DeletionTimestamp.IsZero()
	return objects.Object.Generation != command.Generation || (deleted && command.Operation != contract.FDBResume)
}

// Reserve keeps some of the time that is left for reading the state after a command, or for reporting what was found.
func Reserve(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, limited := ctx.Deadline(); limited {
		return context.WithDeadline(ctx, end.Add(-fdbtool.CheckReserve))
	}
	return context.WithCancel(ctx)
}

// unready says why a command that uses the object store cannot be run.
func (r *reach) unready(operation contract.FDBOperation) *contract.FDBFailure {
	switch {
	case operation != contract.FDBStart && operation != contract.FDBModify:
		return nil
	case r.store != nil:
		return r.store
	case r.Problem != nil:
		return OtherFailure("%s", r.Problem.Message)
	}
	return nil
}

// attempt is one attempt at a command.
type attempt struct {
	*reach
	command contract.FDBCommand
	desired contract.FDBDesired
	// seen is the URL of the tag's backup before the command.
	seen string
}

// state reads the state of the command's tag. Pause and resume have no tag; they read that of the spec's.
func (a *attempt) state(ctx context.Context) (fdb.Status, *contract.FDBFailure) {
	tag := a.command.Tag
	if tag == "" {
		tag = a.desired.Tag
	}
	return a.status(ctx, tag)
}

// settled reads the state, and returns the outcome unless the command has to run.
func (a *attempt) settled(ctx context.Context) (contract.FDBOutcome, bool) {
	status, trouble := a.state(ctx)
	if trouble != nil {
		return contract.FDBOutcome{Failure: trouble}, true
	}
	a.seen = status.Tag.URL
	switch due(a.command, status, a.desired) {
	case commandDone:
		return contract.FDBOutcome{Done: true}, true
	case commandStale:
		return contract.FDBOutcome{Stale: true}, true
	}
	switch {
	case a.command.Operation == contract.FDBStart:
		return a.occupied(ctx, a.command.URL)
	case a.command.Next != "":
		return a.occupied(ctx, a.command.Next)
	}
	return contract.FDBOutcome{}, false
}

// occupied refuses a start into a container that has data: a backup written there could not be restored. A container that an
// interrupted start has created has none.
func (a *attempt) occupied(ctx context.Context, url string) (contract.FDBOutcome, bool) {
	output, trouble := a.describe(ctx, fdbtool.Probe, url)
	switch {
	case trouble != nil && trouble.Class == contract.FDBClassMissing:
		return contract.FDBOutcome{}, false
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}, true
	case !holdsData(output):
		return contract.FDBOutcome{}, false
	}
	return contract.FDBOutcome{Stale: true, Failure: &contract.FDBFailure{
		Class: contract.FDBClassUsed,
		Message: fdb.Bound("there is a backup at "+url+" already, and a second one in the same place could not be "+
			"restored", MaxFDBMessage),
	}}, true
}

// holdsData reports whether a description is of anything but an empty container.
func holdsData(description []byte) bool {
	var found struct {
		Snapshots                                                           []json.RawMessage
		ExpiredEnd, UnreliableEnd, MinLogBegin, ContiguousLogEnd, MaxLogEnd json.RawMessage
	}
	if json.Unmarshal(description, &found) != nil {
		return true // unknown: refuse the start
	}
	for _, point := range []json.RawMessage{
		found.ExpiredEnd, found.UnreliableEnd, found.MinLogBegin, found.ContiguousLogEnd, found.MaxLogEnd,
	} {
		if len(point) > 0 {
			return true
		}
	}
	return len(found.Snapshots) > 0
}

// run runs the command if it is due. The state after it counts, not its exit code.
func (a *attempt) run(ctx context.Context) (contract.FDBOutcome, error) {
	outcome, settled := a.settled(ctx)
	if settled {
		return outcome, nil
	}
	if trouble := a.unacceptable(ctx); trouble != nil {
		return contract.FDBOutcome{Failure: trouble}, nil
	}
	operation, args := a.arguments()
	output, trouble := a.Run(ctx, operation, args)
	if trouble == nil && a.command.Operation != contract.FDBStart {
		return contract.FDBOutcome{Done: true}, nil
	}
	noAgents := strings.Contains(string(output), noAgentsText)
	// The worker may be stopping, or the time be over: the caller must still learn the result of the command.
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), fdbtool.StatusLimit)
	defer cancel()
	status, unread := a.state(fresh)
	if unread == nil {
		switch due(a.command, status, a.desired) {
		case commandDone:
			return contract.FDBOutcome{Done: true, NoAgents: noAgents}, nil
		case commandStale:
			return contract.FDBOutcome{Stale: true, Failure: trouble}, nil
		}
	}
	switch {
	case trouble != nil:
	case unread != nil:
		trouble = unread
	default:
		trouble = OtherFailure("fdbbackup start succeeded, but no backup runs at %s", a.command.URL)
	}
	return contract.FDBOutcome{Failure: trouble}, nil
}

// unacceptable says why the backup that replaces the one to abort cannot be started; nil if it can, as far as the tools can find
// out while that one runs (ADR 0046).
func (a *attempt) unacceptable(ctx context.Context) *contract.FDBFailure {
	if a.command.Next == "" {
		return nil
	}
	trouble := a.rehearse(ctx)
	if trouble != nil {
		trouble.Message = fdb.Bound("the running backup is not aborted, because its replacement would not start: "+
			trouble.Message, MaxFDBMessage)
	}
	return trouble
}

// noAgentsText is in the output of a start that succeeded while no agent answered.
const noAgentsText = "no backup agents are responding"

func (a *attempt) described() fdb.Command {
	return fdb.Command{
		URL: a.command.URL, Tag: a.command.Tag,
		SnapshotPeriodSeconds: a.desired.SnapshotPeriodSeconds, KeyRanges: a.desired.KeyRanges,
	}
}

// arguments returns those of the command. A modify names the URL only if it differs: the tool opens the container then.
func (a *attempt) arguments() (fdbtool.Operation, []string) {
	described := a.described()
	switch a.command.Operation {
	case contract.FDBStart:
		return fdbtool.Start, a.method.Start(described)
	case contract.FDBModify:
		if sameURL(a.seen, a.command.URL) {
			described.URL = ""
		}
		return fdbtool.Modify, a.method.Modify(described)
	case contract.FDBAbort:
		return fdbtool.Abort, a.method.Abort(a.command.Tag)
	case contract.FDBPause:
		return fdbtool.Pause, a.method.Pause()
	}
	return fdbtool.Resume, a.method.Resume()
}
