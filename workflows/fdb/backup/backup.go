package backup

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run. It serves one FoundationDBBackup (docs/foundationdb.md, "Life cycle"): each pass checks the
// backup's status, configures the agents, toggles the backup and the pause, modifies it, and checks again. While the backup must
// run the workflow is open and inspects it at intervals. Once the backup is stopped, or the object gone, it ends, and the next
// event starts it again under the same ID. It is the only writer of the object's status. It sends every command for the database
// to the database's owner, FDBCluster, and asks FDBSnapshotThrottle for a slot for a first snapshot. Data are expired and deleted
// in turns that FDBExpiryQueue gives. The guard of a container, FDBContainer, learns which containers the backup uses.
var Kind = kinds.Of(entity.Kind[*contract.FDBBackupInput, contract.ObjectStep, contract.FDBBackupView]{
	Kind: contract.KindFDBBackup, Read: contract.ObserveFDBBackup,
	Activities: contract.Names(
		contract.ApplyFDBAgents, contract.PlanFDBBackup, contract.PublishFDBBackup, contract.ReleaseFDBBackup,
		contract.InspectFDBBackup, contract.RunFDBCommand,
	),
	Args:    (*contract.FDBBackupInput).Step,
	Settled: Settled, Begin: begin,
	Waits: contract.FDBBackupView{Found: true, ClusterGone: true},
})

type run = entity.Run[*contract.FDBBackupInput, contract.ObjectStep, contract.FDBBackupView]

// backupRun is what a run of this kind has besides.
type backupRun struct {
	*run
	granted workflow.ReceiveChannel
	results workflow.ReceiveChannel
	seen    contract.FDBInspection
	// failed is the last command if it was not done and is still due; postponed: it has to be decided again.
	failed    *Attempt
	postponed bool
	// refused says why the API server refused the agents' Deployment in this pass.
	refused string
	// deep: the next inspection describes the containers. news: something has happened that the owner may have to know.
	deep, news bool
	// deepened: the last inspection described them.
	deepened bool
	// begins: the queue has had no request from this run. unanswered: a guard has not answered.
	begins, unanswered bool
	// found are the conditions and states of the last pass, without progress.
	found string
}

func begin(ctx workflow.Context, r *run) error {
	own := &backupRun{
		run:     r,
		granted: workflow.GetSignalChannel(ctx, contract.SignalSlotGranted),
		results: workflow.GetSignalChannel(ctx, contract.SignalExpiryResult),
		deep:    true, news: true, begins: true,
	}
	r.Others = []workflow.ReceiveChannel{own.granted, own.results}
	r.Pass, r.Drain = own.passAndLeave, own.drain
	r.Wait = func(ctx workflow.Context) error { return r.BlockFor(ctx, own.pause(workflow.Now(ctx)), own.periodic) }
	r.State = func() any { return contract.FDBBackupState{View: r.View, Seen: own.seen, Memory: r.In.Memory} }
	return nil
}

func (r *backupRun) situation() Situation {
	view := r.View
	view.Agents.Refused = r.refused
	return Situation{View: view, Seen: r.seen, Memory: r.In.Memory}
}

// passAndLeave deregisters the backup if it is settled. A guard that has not answered keeps the run open.
func (r *backupRun) passAndLeave(ctx workflow.Context) (settled bool, err error) {
	if err := r.pass(ctx); err != nil || !r.Settled() {
		return false, err
	}
	err = r.leaveAll(ctx)
	return !r.unanswered, err
}

func (r *backupRun) drain() int {
	received := entity.Drain(r.Changed)
	if received > 0 {
		r.news, r.In.Memory.Quiet = true, 0
	}
	grants := entity.Drain(r.granted)
	if grants > 0 {
		r.In.Memory.Slot = contract.FDBSlotGranted
	}
	return received + grants + r.drainResults()
}

// pass runs the five stages once: check, agents, running and pause, modify, check. The later ones run whatever the earlier found.
func (r *backupRun) pass(ctx workflow.Context) error {
	r.postponed = false
	if err := r.Act(ctx, contract.ObserveFDBBackup); err != nil {
		return err
	}
	if done, err := r.expiryFirst(ctx); err != nil || done {
		return err
	}
	if r.Settled() && !AgentsDue(r.View) {
		return nil
	}
	if err := r.inspect(ctx); err != nil {
		return err
	}
	r.refused = ""
	if AgentsDue(r.View) {
		if err := r.Act(ctx, contract.ApplyFDBAgents); err != nil {
			return err
		}
		r.refused = r.View.Agents.Refused
	}
	if err := r.operate(ctx); err != nil {
		return err
	}
	if r.View.BeingDeleted {
		return r.release(ctx)
	}
	return r.publish(ctx)
}

// publish writes what the pass found.
func (r *backupRun) publish(ctx workflow.Context) error {
	if !r.deepened && RangeDue(r.situation()) {
		r.deep = true
		if err := r.inspect(ctx); err != nil {
			return err
		}
	}
	situation := r.situation()
	findings := contract.FDBFindings{
		Ref: r.In.Ref, Generation: r.View.Generation,
		Conditions: Judge(situation, r.failed), Backups: Merge(situation), Expiry: r.In.Memory.Result,
	}
	if err := r.See(call.LocalFirst(ctx, r.Options.Limits, contract.PublishFDBBackup, findings)); err != nil {
		return err
	}
	r.In.Memory.Result = nil
	found := Signature(findings)
	if found == r.found || r.found == "" { // the first pass of a run has nothing to compare with
		r.In.Memory.Quiet++
	} else {
		r.In.Memory.Quiet = 0
	}
	r.found = found
	workflow.SetCurrentDetails(ctx, Details(r.situation(), findings))
	return entity.Show(ctx, &r.In.ObjectInput, Phase(situation), "")
}

const (
	// FirstInterval is the wait before an inspection after something new; it doubles while nothing is new.
	FirstInterval = 2 * time.Second
	// snapshotInterval is the longest wait while a first snapshot is written: others may wait for its end.
	snapshotInterval = time.Minute
	// DefaultStatusInterval is --fdb-status-interval unless the worker says otherwise.
	DefaultStatusInterval = 5 * time.Minute
	// requestAgain is the longest wait of a backup with a request in the queue of expirations, which may have been lost.
	requestAgain = time.Hour
)

// periodic prepares a pass without an event. If the throttle has lost its memory, it learns of this backup again.
func (r *backupRun) periodic() {
	r.deep = true
	switch r.In.Memory.Slot {
	case contract.FDBSlotGranted:
		r.In.Memory.Slot = contract.FDBSlotUnknown
	case contract.FDBSlotRequested:
		r.In.Memory.Slot = contract.FDBSlotNone // no start can have begun: it asks again, and keeps its place
	}
}

// pause returns how long to wait for the next inspection.
func (r *backupRun) pause(now time.Time) time.Duration {
	longest := r.Options.FDBStatusInterval
	if longest <= 0 {
		longest = DefaultStatusInterval
	}
	if left := time.Unix(r.View.ObjectiveChanges, 0).Sub(now); left > 0 { // a second more: it is over then
		longest = min(longest, left+time.Second)
	}
	if r.In.Memory.Slot == contract.FDBSlotGranted {
		longest = min(longest, snapshotInterval)
	}
	if r.In.Memory.Reported != contract.FDBJobNone {
		longest = min(longest, requestAgain)
	}
	if r.postponed {
		return min(longest, entity.Pause)
	}
	const enough = 20 // doublings
	return min(longest, FirstInterval<<min(r.In.Memory.Quiet, enough))
}
