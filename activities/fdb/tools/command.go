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

// Command runs a command that changes something, unless it is done already or undue. It may be repeated after any end: it reads
// the state first, and again when it is not known what became of the command.
func (t *Tools) Command(ctx context.Context, command contract.FDBCommand) (outcome contract.FDBOutcome, err error) {
	defer activities.Beating(ctx)()
	reach, trouble, err := t.reach(ctx, command.Ref)
	defer reach.close(&err)
	switch {
	case err != nil:
		return contract.FDBOutcome{}, err
	case reach == nil || stale(command, reach.Objects):
		return contract.FDBOutcome{Undue: true}, nil
	case trouble != nil:
		return contract.FDBOutcome{Failure: trouble}, nil
	}
	if trouble := reach.unready(command.Operation); trouble != nil {
		return contract.FDBOutcome{Undue: true, Failure: trouble}, nil
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

// UnderLock runs a command while nobody else changes the database's backups.
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
			Failure: OtherFailure("the FoundationDB operator's lock could not be taken: %s", session.Redact(lockErr.Error())),
		}, nil
	}
	return outcome, err // a lock that could not be given back runs out by itself
}

// stale reports whether the spec has changed since the command was decided. Stopping stays right whatever the spec says, and so
// does letting the agents of others run again while the object is being deleted.
func stale(command contract.FDBCommand, objects *gather.Objects) bool {
	if command.Operation == contract.FDBAbort {
		return false
	}
	deleted := !objects.Object.DeletionTimestamp.IsZero()
	return objects.Object.Generation != command.Generation || (deleted && command.Operation != contract.FDBResume)
}

// Reserve keeps some of the time that is left for looking what became of a command, or for telling what was found.
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

// state reads the state of the command's tag; pause and resume have none, and any will do.
func (a *attempt) state(ctx context.Context) (fdb.Status, *contract.FDBFailure) {
	tag := a.command.Tag
	if tag == "" {
		tag = a.desired.Tag
	}
	return a.status(ctx, tag)
}

// settled reads the state, and returns the outcome unless the command is to be run.
func (a *attempt) settled(ctx context.Context) (contract.FDBOutcome, bool) {
	status, trouble := a.state(ctx)
	if trouble != nil {
		return contract.FDBOutcome{Failure: trouble}, true
	}
	a.seen = status.Tag.URL
	switch due(a.command, status, a.desired) {
	case commandDone:
		return contract.FDBOutcome{Done: true}, true
	case commandUndue:
		return contract.FDBOutcome{Undue: true}, true
	}
	switch {
	case a.command.Operation == contract.FDBStart:
		return a.occupied(ctx, a.command.URL)
	case a.command.Next != "":
		return a.occupied(ctx, a.command.Next)
	}
	return contract.FDBOutcome{}, false
}

// occupied refuses a start into a container that has data: a backup written there could not be restored. One that a start has
// made without getting further has none.
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
	return contract.FDBOutcome{Undue: true, Failure: &contract.FDBFailure{
		Class: contract.FDBClassUsed,
		Message: fdb.Bound("there is a backup at "+url+" already, and one that is started again in the same place could "+
			"not be restored", MaxFDBMessage),
	}}, true
}

// holdsData reports whether a description tells of anything but an empty container.
func holdsData(description []byte) bool {
	var found struct {
		Snapshots                                                           []json.RawMessage
		ExpiredEnd, UnreliableEnd, MinLogBegin, ContiguousLogEnd, MaxLogEnd json.RawMessage
	}
	if json.Unmarshal(description, &found) != nil {
		return true // unknown: rather not
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

// run runs the command if it is due. Its end says little: what counts is the state after it.
func (a *attempt) run(ctx context.Context) (contract.FDBOutcome, error) {
	outcome, settled := a.settled(ctx)
	if settled {
		return outcome, nil
	}
	operation, args := a.arguments()
	output, trouble := a.Run(ctx, operation, args)
	if trouble == nil && a.command.Operation != contract.FDBStart {
		return contract.FDBOutcome{Done: true}, nil
	}
	noAgents := strings.Contains(string(output), noAgentsText)
	// The worker may be stopping, or the time be over: whoever decided must still learn what became of the command.
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), fdbtool.StatusLimit)
	defer cancel()
	status, unread := a.state(fresh)
	if unread == nil {
		switch due(a.command, status, a.desired) {
		case commandDone:
			return contract.FDBOutcome{Done: true, NoAgents: noAgents}, nil
		case commandUndue:
			return contract.FDBOutcome{Undue: true, Failure: trouble}, nil
		}
	}
	switch {
	case trouble != nil:
	case unread != nil:
		trouble = unread
	default:
		trouble = OtherFailure("fdbbackup start was taken, but no backup runs at %s", a.command.URL)
	}
	return contract.FDBOutcome{Failure: trouble}, nil
}

// noAgentsText is what a start says that was taken, while no agent answered.
const noAgentsText = "no backup agents are responding"

// arguments are those of the command. A modification names the URL only where it differs: the tool opens the container then.
func (a *attempt) arguments() (fdbtool.Operation, []string) {
	described := fdb.Command{
		URL: a.command.URL, Tag: a.command.Tag,
		SnapshotPeriodSeconds: a.desired.SnapshotPeriodSeconds, KeyRanges: a.desired.KeyRanges,
	}
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
