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

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindRestore,
	Activities: contract.Names(
		contract.RefreshRestore, contract.StartRestore, contract.AdmitRestore, contract.CheckRestoreStall, contract.DeleteRestore,
		contract.ReleaseRestore,
	),
	Read: contract.RefreshRestore.Name, Decisions: restoreDecisions,
	Run: kinds.Serving(Workflow),
}

// Workflow serves one NonAdminRestore from its creation, or any later event, until it is settled; the next event starts it
// again under the same ID. It is the only writer of the object's status, except the queue position and, during the
// finalization, the finalization.
//
// An activity that fails is retried without a limit, unless a retry cannot succeed; an invalid spec is a condition on the
// object. Only a status that the API server calls invalid fails a run, which is visible in Temporal: the next event or resync
// starts another.
func Workflow(ctx workflow.Context, in contract.RestoreInput, options call.Options) error {
	run := &restoreRun{in: in, options: options, signals: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	run.turn = turns.Of(contract.PoolRestores, in.ObjectInput, &run.in.Turn)
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.RestoreState, error) {
		return contract.RestoreState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// restoreRun is the state of one run. Nothing in it outlives the run but what RestoreInput carries over.
type restoreRun struct {
	in      contract.RestoreInput
	options call.Options
	signals workflow.ReceiveChannel
	view    contract.RestoreView
	turn    turns.Held
	watch   stall.Watch
	// next is the next step, as of the last pass.
	next entity.Step
}

// Pass implements entity.Object.
func (r *restoreRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	step, err := entity.Course[contract.RestoreView]{Read: stepRefreshRestore, Next: restoreDecisions.Next, Do: r.take}.Take(ctx)
	if err != nil {
		return entity.Waiting, err
	}
	r.next = step
	if err := r.turn.Settle(ctx, r.options.Limits, turns.Use{
		Unfinished: r.view.Velero.Exists && !r.view.Velero.Finished, Stalled: r.view.Velero.Stalled, Waits: r.view.AwaitsTurn,
	}); err != nil {
		return entity.Waiting, err
	}
	return entity.OutcomeOf(step), r.show(ctx)
}

func (r *restoreRun) take(ctx workflow.Context, step entity.Step) (contract.RestoreView, error) {
	view, err := call.LocalFirst(ctx, r.options.Limits, restoreSteps.Activity(step),
		contract.RestoreStep{Ref: r.in.Ref, Volumes: r.in.Volumes, Turn: r.in.Turn.Left(workflow.Now(ctx))})
	if err != nil {
		return view, err
	}
	r.view = view
	if view.TurnUsed {
		r.turn.Used()
	}
	return view, nil
}

// finalize runs the finalization as a child, which alone writes the object meanwhile, and waits for its end. The child checks
// for a deletion itself; signals wait. Parent and child end together, so after a run was terminated the finalization starts
// again.
func (r *restoreRun) finalize(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Finalizing:** Velero has ended Velero Restore `%s` (%s); "+
		"the finalization has a workflow of its own, a child of this one.", r.view.Velero.Name, r.view.Velero.Phase))
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            contract.WorkflowID(r.in.Cluster, contract.KindFinalization, r.in.Ref),
		WorkflowTaskTimeout:   contract.WorkflowTaskTimeout,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_TERMINATE,
		TypedSearchAttributes: contract.KindRestore.Attributes(r.in.Cluster, r.in.Ref),
		StaticSummary:         contract.KindFinalization.SummaryOf(r.in.Ref.String()),
	})
	var result contract.FinalizationResult
	err := workflow.ExecuteChildWorkflow(child, contract.KindFinalization.Workflow,
		contract.ObjectInput{Cluster: r.in.Cluster, Ref: r.in.Ref}).Get(ctx, &result)
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

// Drain implements entity.Object.
func (r *restoreRun) Drain() int {
	return entity.DrainNoting(r.signals, func(changed contract.Changed) {
		r.in.Volumes = r.in.Volumes || changed.Volumes
		r.turn.Note(changed.Turn)
	})
}

// Carry implements entity.Object.
func (r *restoreRun) Carry() any { return r.in }

func (r *restoreRun) show(ctx workflow.Context) error {
	r.measure(ctx)
	return entity.Show(ctx, &r.in.ObjectInput, r.view.Phase, r.view.Velero.Phase)
}

// measure counts how long the last phase of Velero's lasted. A phase that began before the workflow first read it seems shorter
// than it was.
func (r *restoreRun) measure(ctx workflow.Context) {
	phase := cmp.Or(r.view.Velero.Phase, "New")
	if !r.view.Velero.Exists || phase == r.in.VeleroPhase {
		return
	}
	now := workflow.Now(ctx)
	if r.in.VeleroPhase != "" {
		workflow.GetMetricsHandler(ctx).WithTags(map[string]string{"phase": r.in.VeleroPhase}).
			Timer(contract.MetricRestorePhase).Record(now.Sub(r.in.VeleroPhaseSince))
	}
	r.in.VeleroPhase, r.in.VeleroPhaseSince = phase, now
}

// Wait implements entity.Object. It waits until a signal comes or the next re-read is due, or for the finalization.
func (r *restoreRun) Wait(ctx workflow.Context) error {
	if r.next == stepFinalize {
		return r.finalize(ctx)
	}
	workflow.SetCurrentDetails(ctx, restoreDecisions.Awaited(r.view))
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.signals, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	r.watch.Keep(ctx, selector, stall.RereadInterval(r.options), r.checkStall)
	selector.Select(ctx)
	return ctx.Err()
}

func (r *restoreRun) checkStall(ctx workflow.Context) workflow.Future {
	if r.view.Velero.Phase != stall.InProgress || r.view.Velero.Deleting {
		return nil
	}
	return stall.Check(ctx, contract.CheckRestoreStall, contract.RestoreStep{Ref: r.in.Ref})
}
