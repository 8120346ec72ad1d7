package backup

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindFDBBackup,
	Activities: contract.Names(
		contract.ObserveFDBBackup, contract.ApplyFDBAgents, contract.PlanFDBBackup, contract.PublishFDBBackup,
		contract.ReleaseFDBBackup, contract.InspectFDBBackup, contract.RunFDBCommand,
	),
	Read: contract.ObserveFDBBackup.Name, Decisions: entity.Decisions[contract.FDBBackupView]{Settled: Settled},
	Run: kinds.Serving(Workflow),
}

// Workflow serves one FoundationDBBackup (docs/foundationdb.md, "Life cycle"): each pass checks the backup's status, configures
// the agents, toggles the backup and the pause, modifies it, and checks again. While the backup must run the workflow is open and
// inspects it at intervals. Once the backup is stopped, or the object gone, it ends, and the next event starts it again under the
// same ID. It is the only writer of the object's status. It sends every command for the database to the database's owner,
// FDBCluster, and asks FDBSnapshotThrottle for a slot for a first snapshot. Data are expired and deleted in turns that
// FDBExpiryQueue gives. The guard of a container, FDBContainer, learns which containers the backup uses.
func Workflow(ctx workflow.Context, in contract.FDBBackupInput, options call.Options) error {
	run := &backupRun{
		in: in, options: options,
		changed: workflow.GetSignalChannel(ctx, contract.SignalChanged),
		granted: workflow.GetSignalChannel(ctx, contract.SignalSlotGranted),
		results: workflow.GetSignalChannel(ctx, contract.SignalExpiryResult),
		deep:    true, news: true, begins: true,
	}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBBackupState, error) {
		return contract.FDBBackupState{View: run.view, Seen: run.seen, Memory: run.in.Memory}, nil
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// backupRun is the state of one run. Nothing in it outlives the run except what FDBBackupInput hands over.
type backupRun struct {
	in      contract.FDBBackupInput
	options call.Options
	changed workflow.ReceiveChannel
	granted workflow.ReceiveChannel
	results workflow.ReceiveChannel
	view    contract.FDBBackupView
	seen    contract.FDBInspection
	// failed is the last command if it was not done and is still due; undue: it has to be decided again.
	failed *Attempt
	undue  bool
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

func (r *backupRun) memory() *contract.FDBMemory { return &r.in.Memory }

func (r *backupRun) situation() Situation {
	view := r.view
	view.Agents.Refused = r.refused
	return Situation{View: view, Seen: r.seen, Memory: r.in.Memory}
}

// Pass implements entity.Object. A guard that has not answered keeps the run open.
func (r *backupRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	if err := r.pass(ctx); err != nil || !r.settled() {
		return entity.Waiting, err
	}
	if err := r.leaveAll(ctx); err != nil || r.unanswered {
		return entity.Waiting, err
	}
	return entity.Settled, nil
}

// Carry implements entity.Object.
func (r *backupRun) Carry() any { return r.in }

// Drain implements entity.Object.
func (r *backupRun) Drain() int {
	received := entity.Drain(r.changed)
	if received > 0 {
		r.news, r.memory().Quiet = true, 0
	}
	grants := entity.Drain(r.granted)
	if grants > 0 {
		r.memory().Slot = contract.FDBSlotGranted
	}
	return received + grants + r.drainResults()
}

// settled reports whether nothing is left to do until the next event.
func (r *backupRun) settled() bool { return Settled(r.view) }

// pass runs the five stages once: check, agents, running and pause, modify, check. The later ones run whatever the earlier found.
func (r *backupRun) pass(ctx workflow.Context) error {
	r.undue = false
	err := r.see(call.LocalFirst(ctx, r.options.Limits, contract.ObserveFDBBackup,
		contract.FDBBackupStep{Ref: r.in.Ref}))
	if err != nil {
		return err
	}
	if done, err := r.expiryFirst(ctx); err != nil || done {
		return err
	}
	if r.settled() && !AgentsDue(r.view) {
		return nil
	}
	if err := r.inspect(ctx); err != nil {
		return err
	}
	r.refused = ""
	if AgentsDue(r.view) {
		err := r.see(call.LocalFirst(ctx, r.options.Limits, contract.ApplyFDBAgents,
			contract.FDBBackupStep{Ref: r.in.Ref}))
		if err != nil {
			return err
		}
		r.refused = r.view.Agents.Refused
	}
	if err := r.operate(ctx); err != nil {
		return err
	}
	if r.view.BeingDeleted {
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
		Ref: r.in.Ref, Generation: r.view.Generation,
		Conditions: Judge(situation, r.failed), Backups: Merge(situation), Expiry: r.memory().Result,
	}
	if err := r.see(call.LocalFirst(ctx, r.options.Limits, contract.PublishFDBBackup, findings)); err != nil {
		return err
	}
	r.memory().Result = nil
	found := Signature(findings)
	if found == r.found || r.found == "" { // the first pass of a run has nothing to compare with
		r.memory().Quiet++
	} else {
		r.memory().Quiet = 0
	}
	r.found = found
	workflow.SetCurrentDetails(ctx, Details(r.situation(), findings))
	return entity.Show(ctx, &r.in.ObjectInput, Phase(situation), "")
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

// Wait implements entity.Object. It waits until a signal comes or the next inspection is due.
func (r *backupRun) Wait(ctx workflow.Context) error {
	timing, cancel := workflow.WithCancel(ctx)
	defer cancel()
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.changed, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(r.granted, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(r.results, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddFuture(workflow.NewTimer(timing, r.pause(workflow.Now(ctx))), func(workflow.Future) { r.periodic() })
	selector.Select(ctx)
	return ctx.Err()
}

// periodic prepares a pass without an event. If the throttle has lost its memory, it learns of this backup again.
func (r *backupRun) periodic() {
	r.deep = true
	switch r.memory().Slot {
	case contract.FDBSlotGranted:
		r.memory().Slot = contract.FDBSlotUnknown
	case contract.FDBSlotRequested:
		r.memory().Slot = contract.FDBSlotNone // no start can have begun: it asks again, and keeps its place
	}
}

// pause returns how long to wait for the next inspection.
func (r *backupRun) pause(now time.Time) time.Duration {
	longest := r.options.FDBStatusInterval
	if longest <= 0 {
		longest = DefaultStatusInterval
	}
	if left := time.Unix(r.view.ObjectiveChanges, 0).Sub(now); left > 0 { // a second more: it is over then
		longest = min(longest, left+time.Second)
	}
	if r.memory().Slot == contract.FDBSlotGranted {
		longest = min(longest, snapshotInterval)
	}
	if r.memory().Reported != contract.FDBJobNone {
		longest = min(longest, requestAgain)
	}
	if r.undue {
		return min(longest, entity.Pause)
	}
	const enough = 20 // doublings
	return min(longest, FirstInterval<<min(r.memory().Quiet, enough))
}
