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
	"holdfast.dev/holdfast/workflows/fdb/requests"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run. It serves one FoundationDBRestore (docs/foundationdb-restore.md, "What happens"): each pass
// inspects the restore in the destination, starts or aborts it, or checks its end, and writes what it found. A restore is planned
// and started once, and never again. The workflow ends with the restore, and the next event starts it again under the same ID. It
// is the only writer of the object's status. It sends every command for the destination to the destination's owner, FDBCluster.
// The guard of the container, FDBContainer, grants no expiration while the restore reads it.
var Kind = kinds.Of(entity.Kind[*contract.FDBRestoreInput, contract.ObjectStep, contract.FDBRestoreView]{
	Kind: contract.KindFDBRestore, Read: contract.ObserveFDBRestore,
	Activities: contract.Names(
		contract.PlanFDBRestore, contract.PublishFDBRestore, contract.ReleaseFDBRestore, contract.InspectFDBRestore,
		contract.RunFDBRestoreCommand, contract.FinalizeFDBRestore,
	),
	Args:    (*contract.FDBRestoreInput).Step,
	Settled: Settled, Begin: begin,
	Waits: contract.FDBRestoreView{Found: true, ClusterGone: true},
})

type run = entity.Run[*contract.FDBRestoreInput, contract.ObjectStep, contract.FDBRestoreView]

// restoreRun is what a run of this kind has besides.
type restoreRun struct {
	*run
	seen contract.FDBRestoreInspection
	// resolved: seen has the version to restore to. busy is from the guard's last answer; opposed from the owner's.
	resolved bool
	busy     string
	opposed  []string
	tasks    []contract.RecordedTask
	// failed is the last command if it was not done and is still due; postponed: it has to be decided again.
	failed    *Attempt
	postponed bool
	// news: something has happened that the owner may have to know.
	news bool
	// patient: only a person can help. found are the state and the conditions of the last pass.
	patient bool
	found   string
}

func begin(_ workflow.Context, r *run) error {
	own := &restoreRun{run: r, news: true}
	r.Pass, r.Drain = own.passAndLeave, own.drain
	r.Wait = func(ctx workflow.Context) error { return r.BlockFor(ctx, own.pause(ctx), func() {}) }
	r.State = func() any { return contract.FDBRestoreState{View: r.View, Seen: own.seen, Memory: r.In.Memory} }
	return nil
}

func (r *restoreRun) situation(ctx workflow.Context) Situation {
	return Situation{
		View: r.View, Seen: r.seen, Resolved: r.resolved, Memory: r.In.Memory, Busy: r.busy, Opposed: r.opposed, Tasks: r.tasks,
		Now: workflow.Now(ctx),
	}
}

// passAndLeave deregisters the restore if it is settled.
func (r *restoreRun) passAndLeave(ctx workflow.Context) (settled bool, err error) {
	if err := r.pass(ctx); err != nil || !r.Settled() {
		return false, err
	}
	return true, r.leaveAll(ctx)
}

func (r *restoreRun) drain() int {
	received := entity.Drain(r.Changed)
	if received > 0 {
		r.news, r.patient, r.In.Memory.Quiet = true, false, 0
	}
	return received
}

// pass inspects, does what is due, and publishes what it found.
func (r *restoreRun) pass(ctx workflow.Context) error {
	r.postponed, r.failed, r.busy = false, nil, ""
	if err := r.Act(ctx, contract.ObserveFDBRestore); err != nil || r.Settled() {
		return err
	}
	if err := r.inspect(ctx, false); err != nil {
		return err
	}
	if err := r.operate(ctx); err != nil {
		return err
	}
	if r.Settled() { // the object is gone meanwhile
		return nil
	}
	if r.View.BeingDeleted {
		return r.release(ctx)
	}
	return r.publish(ctx)
}

// publish writes what the pass found.
func (r *restoreRun) publish(ctx workflow.Context) error {
	situation := r.situation(ctx)
	findings := Find(situation, r.In.Ref, r.failed)
	if err := r.See(call.LocalFirst(ctx, r.Options.Limits, contract.PublishFDBRestore, findings)); err != nil {
		return err
	}
	found := Signature(findings)
	if found == r.found || r.found == "" { // the first pass of a run has nothing to compare with
		r.In.Memory.Quiet++
	} else {
		r.In.Memory.Quiet = 0
	}
	r.found, r.patient = found, Patient(findings.Conditions)
	workflow.SetCurrentDetails(ctx, Details(situation, findings))
	return entity.Show(ctx, &r.In.ObjectInput, string(restoretool.Observed(findings.State)), "")
}

// release releases an object whose restore has ended, or cannot be ended.
func (r *restoreRun) release(ctx workflow.Context) error {
	m := &r.In.Memory
	m.UnreachableSince = requests.UnreachableSince(m.UnreachableSince, r.View.Owner, r.seen.Failure, workflow.Now(ctx))
	due, note := ReleaseDue(r.situation(ctx), r.failed, r.resourceTimeout(ctx))
	if !due {
		r.In.Memory.Quiet++
		blocker := details.OneLine(AbortBlocker(r.situation(ctx), r.failed))
		workflow.SetCurrentDetails(ctx, "**Deleting:** the restore is to be aborted first: "+blocker)
		return nil
	}
	if err := r.leaveAll(ctx); err != nil {
		return err
	}
	release := contract.FDBRestoreRelease{
		Ref: r.In.Ref, Note: note,
		Aborted: r.seen.Failure == nil && r.seen.Restore != nil && r.seen.Restore.State == StateAborted,
	}
	return requests.ShowRelease(ctx, note, func() error {
		return r.See(call.LocalFirst(ctx, r.Options.Limits, contract.ReleaseFDBRestore, release))
	})
}

// leaveAll deregisters the restore with the owner and the guard.
func (r *restoreRun) leaveAll(ctx workflow.Context) error {
	if r.In.Memory.Owner != "" {
		if err := r.leave(ctx); err != nil {
			return err
		}
	}
	if r.In.Memory.Reading == "" {
		return nil
	}
	return r.leaveContainer(ctx)
}

// runningInterval is the longest wait while the restore runs, or is to be aborted.
const runningInterval = 15 * time.Second

// pause returns how long to wait for the next inspection.
func (r *restoreRun) pause(ctx workflow.Context) time.Duration {
	longest := r.Options.FDBStatusInterval
	if longest <= 0 {
		longest = fdbbackup.DefaultStatusInterval
	}
	switch {
	case r.postponed:
		return min(longest, entity.Pause)
	case r.situation(ctx).Runs():
		longest = min(longest, runningInterval)
	case r.patient:
		return longest
	}
	const enough = 20 // doublings
	return min(longest, fdbbackup.FirstInterval<<min(r.In.Memory.Quiet, enough))
}
