package restore

import (
	"cmp"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/stall"
	"holdfast.dev/holdfast/workflows/turns"
)

// Kind is how the workflow is run. It serves one NonAdminRestore from its creation, or any later event, until it is settled; the
// next event starts it again under the same ID. It is the only writer of the object's status, except the queue position and,
// during the finalization, the finalization.
//
// An activity that fails is retried without a limit, unless a retry cannot succeed; an invalid spec is a condition on the
// object. Only a status that the API server calls invalid fails a run, which is visible in Temporal: the next event or resync
// starts another.
var Kind = kinds.Of(entity.Kind[*contract.RestoreInput, contract.RestoreStep, contract.RestoreView]{
	Kind: contract.KindRestore, Read: contract.RefreshRestore,
	Activities: contract.Names(
		contract.StartRestore, contract.AdmitRestore, contract.CheckRestoreStall, contract.DeleteRestore, contract.ReleaseRestore,
	),
	Settled: Settled, Next: next, Awaited: awaited, Begin: begin,
	Phases: func(v contract.RestoreView) (string, string) { return v.Phase, v.Velero.Phase },
	Waits: contract.RestoreView{
		Found: true, Phase: "Created", Finalizer: true, SpecValidated: true, Accepted: true, EverCreated: true,
		Velero: contract.VeleroRestoreView{Exists: true, Name: "r", Phase: "InProgress", AtWork: true},
	},
})

type (
	run      = entity.Run[*contract.RestoreInput, contract.RestoreStep, contract.RestoreView]
	activity = contract.Activity[contract.RestoreStep, contract.RestoreView]
)

// restoreRun is what a run of this kind has besides.
type restoreRun struct {
	*run
	turn turns.Held
}

func begin(_ workflow.Context, r *run) error {
	own := &restoreRun{run: r, turn: turns.Of(contract.PoolRestores, r.In.ObjectInput, &r.In.Turn)}
	r.Do, r.Passed, r.Drain, r.Wait = own.do, own.passed, own.drain, own.wait
	r.Waiters = []entity.Waiter{stall.Watch(r.Options, contract.CheckRestoreStall, contract.RestoreStep{Ref: r.In.Ref},
		func() bool { return r.View.Velero.Phase == stall.InProgress && !r.View.Velero.Deleting })}
	return nil
}

func (r *restoreRun) do(ctx workflow.Context, step activity) (contract.RestoreView, error) {
	view, err := call.LocalFirst(ctx, r.Options.Limits, step,
		contract.RestoreStep{Ref: r.In.Ref, Volumes: r.In.Volumes, Turn: r.In.Turn.Remaining(workflow.Now(ctx))})
	if err == nil && view.TurnUsed {
		r.turn.Used()
	}
	return view, err
}

func (r *restoreRun) passed(ctx workflow.Context) error {
	if err := r.turn.Settle(ctx, r.Options.Limits, turns.Use{
		Unfinished: r.View.Velero.Exists && !r.View.Velero.Finished, Stalled: r.View.Velero.Stalled, Waits: r.View.AwaitsTurn,
	}); err != nil {
		return err
	}
	r.measure(ctx)
	return nil
}

func (r *restoreRun) drain() int {
	return entity.DrainNoting(r.Changed, func(changed contract.VeleroChanged) {
		r.In.Volumes = r.In.Volumes || changed.Volumes
		r.turn.Note(changed.Turn)
	})
}

// wait waits for the finalization, if that is due.
func (r *restoreRun) wait(ctx workflow.Context) error {
	if finalizationDue(r.View) {
		return r.finalize(ctx)
	}
	return r.Block(ctx)
}

// finalize runs the finalization as a child, which alone writes the object meanwhile, and waits for its end. The child checks
// for a deletion itself; signals wait. Parent and child end together, so after a run was terminated the finalization starts
// again.
func (r *restoreRun) finalize(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Finalizing:** Velero has ended Velero Restore `%s` (%s). A child workflow "+
		"runs the finalization.", r.View.Velero.Name, r.View.Velero.Phase))
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            contract.WorkflowID(r.In.Cluster, contract.KindFinalization, r.In.Ref),
		WorkflowTaskTimeout:   contract.WorkflowTaskTimeout,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_TERMINATE,
		TypedSearchAttributes: contract.KindRestore.Attributes(r.In.Cluster, r.In.Ref),
		StaticSummary:         contract.KindFinalization.SummaryOf(r.In.Ref.String()),
	})
	var result contract.FinalizationResult
	err := workflow.ExecuteChildWorkflow(child, contract.KindFinalization.Workflow,
		contract.ObjectInput{Cluster: r.In.Cluster, Ref: r.In.Ref}).Get(ctx, &result)
	var running *temporal.ChildWorkflowExecutionAlreadyStartedError
	switch {
	case errors.As(err, &running): // the child of a run that was terminated a moment ago: it is about to end
	case err != nil:
		return err
	case result.Phase != "":
		return nil
	}
	return workflow.Sleep(ctx, entity.Pause) // nothing was done: the next pass decides by the present state
}

// measure counts how long the last phase of Velero's lasted. A phase that began before the workflow first read it seems shorter
// than it was.
func (r *restoreRun) measure(ctx workflow.Context) {
	phase := cmp.Or(r.View.Velero.Phase, "New")
	if !r.View.Velero.Exists || phase == r.In.VeleroPhase {
		return
	}
	now := workflow.Now(ctx)
	if r.In.VeleroPhase != "" {
		workflow.GetMetricsHandler(ctx).WithTags(map[string]string{"phase": r.In.VeleroPhase}).
			Timer(contract.MetricRestorePhase).Record(now.Sub(r.In.VeleroPhaseSince))
	}
	r.In.VeleroPhase, r.In.VeleroPhaseSince = phase, now
}
