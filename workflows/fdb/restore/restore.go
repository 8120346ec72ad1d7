package restore

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/entity"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
	"holdfast.dev/holdfast/workflows/fdb/tools"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindFDBRestore,
	Activities: contract.Names(
		contract.ObserveFDBRestore, contract.PlanFDBRestore, contract.PublishFDBRestore, contract.ReleaseFDBRestore,
		contract.InspectFDBRestore, contract.RunFDBRestoreCommand, contract.FinalizeFDBRestore,
	),
	Read: contract.ObserveFDBRestore.Name, Decisions: entity.Decisions[contract.FDBRestoreView]{Settled: Settled},
	Run: kinds.Serving(Workflow),
}

// Workflow serves one FoundationDBRestore (docs/foundationdb-restore.md, "What happens"): each pass inspects the restore in the
// destination, starts or aborts it, or checks its end, and writes what it found. A restore is planned and started once, and never
// again. The workflow ends with the restore, and the next event starts it again under the same ID. It is the only writer of the
// object's status. It sends every command for the destination to the destination's owner, FDBCluster. The guard of the container,
// FDBContainer, grants no expiration while the restore reads it.
func Workflow(ctx workflow.Context, in contract.FDBRestoreInput, options call.Options) error {
	run := &restoreRun{
		in: in, options: options, news: true,
		changed: workflow.GetSignalChannel(ctx, contract.SignalChanged),
	}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBRestoreState, error) {
		return contract.FDBRestoreState{View: run.view, Seen: run.seen, Memory: run.in.Memory}, nil
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// restoreRun is the state of one run. Nothing in it outlives the run except what FDBRestoreInput hands over.
type restoreRun struct {
	in      contract.FDBRestoreInput
	options call.Options
	changed workflow.ReceiveChannel
	view    contract.FDBRestoreView
	seen    contract.FDBRestoreInspection
	// resolved: seen has the version to restore to. busy is from the guard's last answer; opposed from the owner's.
	resolved bool
	busy     string
	opposed  []string
	tasks    []contract.RecordedTask
	// failed is the last command if it was not done and is still due; undue: it has to be decided again.
	failed *Attempt
	undue  bool
	// news: something has happened that the owner may have to know.
	news bool
	// patient: only a person can help. found are the state and the conditions of the last pass.
	patient bool
	found   string
}

func (r *restoreRun) memory() *contract.FDBRestoreMemory { return &r.in.Memory }

func (r *restoreRun) situation(ctx workflow.Context) Situation {
	return Situation{
		View: r.view, Seen: r.seen, Resolved: r.resolved, Memory: r.in.Memory, Busy: r.busy, Opposed: r.opposed, Tasks: r.tasks,
		Now: workflow.Now(ctx),
	}
}

// Pass implements entity.Object.
func (r *restoreRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	if err := r.pass(ctx); err != nil || !Settled(r.view) {
		return entity.Waiting, err
	}
	return entity.Settled, r.leaveAll(ctx)
}

// Carry implements entity.Object.
func (r *restoreRun) Carry() any { return r.in }

// Drain implements entity.Object.
func (r *restoreRun) Drain() int {
	received := entity.Drain(r.changed)
	if received > 0 {
		r.news, r.patient, r.memory().Quiet = true, false, 0
	}
	return received
}

// pass inspects, does what is due, and publishes what it found.
func (r *restoreRun) pass(ctx workflow.Context) error {
	r.undue, r.failed, r.busy = false, nil, ""
	err := r.see(call.LocalFirst(ctx, r.options.Limits, contract.ObserveFDBRestore,
		contract.FDBRestoreStep{Ref: r.in.Ref}))
	if err != nil || Settled(r.view) {
		return err
	}
	if err := r.inspect(ctx, false); err != nil {
		return err
	}
	if err := r.operate(ctx); err != nil {
		return err
	}
	if Settled(r.view) { // the object is gone meanwhile
		return nil
	}
	if r.view.BeingDeleted {
		return r.release(ctx)
	}
	return r.publish(ctx)
}

// publish writes what the pass found.
func (r *restoreRun) publish(ctx workflow.Context) error {
	situation := r.situation(ctx)
	findings := Find(situation, r.in.Ref, r.failed)
	if err := r.see(call.LocalFirst(ctx, r.options.Limits, contract.PublishFDBRestore, findings)); err != nil {
		return err
	}
	found := Signature(findings)
	if found == r.found || r.found == "" { // the first pass of a run has nothing to compare with
		r.memory().Quiet++
	} else {
		r.memory().Quiet = 0
	}
	r.found, r.patient = found, Patient(findings.Conditions)
	workflow.SetCurrentDetails(ctx, Details(situation, findings))
	return entity.Show(ctx, &r.in.ObjectInput, string(restoretool.Observed(findings.State)), "")
}

// release releases an object whose restore has ended, or cannot be ended.
func (r *restoreRun) release(ctx workflow.Context) error {
	r.in.Memory = NoticeUnreachable(r.situation(ctx))
	due, note := ReleaseDue(r.situation(ctx), r.failed, r.resourceTimeout(ctx))
	if !due {
		r.memory().Quiet++
		blocker := details.OneLine(AbortBlocker(r.situation(ctx), r.failed))
		workflow.SetCurrentDetails(ctx, "**Deleting:** the restore is to be aborted first: "+blocker)
		return nil
	}
	if err := r.leaveAll(ctx); err != nil {
		return err
	}
	release := contract.FDBRestoreRelease{
		Ref: r.in.Ref, Note: note,
		Aborted: r.seen.Failure == nil && r.seen.Restore != nil && r.seen.Restore.State == StateAborted,
	}
	return tools.ShowRelease(ctx, note, func() error {
		return r.see(call.LocalFirst(ctx, r.options.Limits, contract.ReleaseFDBRestore, release))
	})
}

// leaveAll deregisters the restore with the owner and the guard.
func (r *restoreRun) leaveAll(ctx workflow.Context) error {
	if r.memory().Owner != "" {
		if err := r.leave(ctx); err != nil {
			return err
		}
	}
	if r.memory().Reading == "" {
		return nil
	}
	return r.leaveContainer(ctx)
}

// runningInterval is the longest wait while the restore runs, or is to be aborted.
const runningInterval = 15 * time.Second

// Wait implements entity.Object. It waits until a signal comes or the next inspection is due.
func (r *restoreRun) Wait(ctx workflow.Context) error {
	timing, cancel := workflow.WithCancel(ctx)
	defer cancel()
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.changed, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddFuture(workflow.NewTimer(timing, r.pause(ctx)), func(workflow.Future) {})
	selector.Select(ctx)
	return ctx.Err()
}

// pause returns how long to wait for the next inspection.
func (r *restoreRun) pause(ctx workflow.Context) time.Duration {
	longest := r.options.FDBStatusInterval
	if longest <= 0 {
		longest = fdbbackup.DefaultStatusInterval
	}
	switch {
	case r.undue:
		return min(longest, entity.Pause)
	case r.situation(ctx).Runs():
		longest = min(longest, runningInterval)
	case r.patient:
		return longest
	}
	const enough = 20 // doublings
	return min(longest, fdbbackup.FirstInterval<<min(r.memory().Quiet, enough))
}
