package backup

import (
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
	Kind: contract.KindBackup,
	Activities: contract.Names(
		contract.RefreshBackup, contract.StartBackup, contract.CheckVeleroStall, contract.AdmitBackup,
		contract.MarkBackupDeleting, contract.RequestDeletion, contract.WithdrawBackup, contract.DeleteVeleroObjects,
		contract.ReleaseBackup,
	),
	Read: contract.RefreshBackup.Name, Decisions: backupDecisions,
	Run: kinds.Serving(Workflow),
}

// Workflow serves one NonAdminBackup from its creation, or any later event, until it is settled; the next event starts it again
// under the same ID. It is the only writer of the object's status, except the queue position.
//
// An activity that fails is retried without a limit, unless a retry cannot succeed; an invalid spec is a condition on the
// object. Only a status that the API server calls invalid fails a run, which is visible in Temporal: the next event or resync
// starts another.
func Workflow(ctx workflow.Context, in contract.BackupInput, options call.Options) error {
	run := &backupRun{in: in, options: options, signals: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	run.turn = turns.Of(contract.PoolBackups, in.ObjectInput, &run.in.Turn)
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.BackupState, error) {
		return contract.BackupState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// backupRun is the state of one run. Nothing in it outlives the run but what BackupInput carries over.
type backupRun struct {
	in      contract.BackupInput
	options call.Options
	signals workflow.ReceiveChannel
	view    contract.BackupView
	turn    turns.Held
	watch   stall.Watch
	retry   *retryTimer
}

// retryTimer runs until a refused deletion is requested again. Signals must not delay it, so it outlasts them.
type retryTimer struct {
	attempt int
	due     workflow.Future
	stop    workflow.CancelFunc
}

// Pass implements entity.Object.
func (r *backupRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	step, err := entity.Course[contract.BackupView]{Read: stepRefresh, Next: backupDecisions.Next, Do: r.take}.Take(ctx)
	if err != nil {
		return entity.Waiting, err
	}
	if err := r.turn.Settle(ctx, r.options.Limits, turns.Use{
		Unfinished: r.view.Velero.Exists && !r.view.Velero.Finished, Stalled: r.view.Velero.Stalled, Waits: r.view.AwaitsTurn,
	}); err != nil {
		return entity.Waiting, err
	}
	return entity.OutcomeOf(step), r.show(ctx)
}

func (r *backupRun) take(ctx workflow.Context, step entity.Step) (contract.BackupView, error) {
	attempt := 1
	if step == stepRefresh {
		attempt = 0
	}
	err := r.do(ctx, step, attempt)
	return r.view, err
}

func (r *backupRun) do(ctx workflow.Context, step entity.Step, attempt int) error {
	view, err := call.LocalFirst(ctx, r.options.Limits, backupSteps.Activity(step),
		contract.BackupStep{Ref: r.in.Ref, Attempt: attempt, Volumes: r.in.Volumes, Turn: r.in.Turn.Left(workflow.Now(ctx))})
	if err != nil {
		return err
	}
	r.view = view
	if view.TurnUsed {
		r.turn.Used()
	}
	return nil
}

func (r *backupRun) show(ctx workflow.Context) error {
	return entity.Show(ctx, &r.in.ObjectInput, r.view.Phase, r.view.Velero.Phase)
}

// Wait implements entity.Object. It waits until a signal comes, the next re-read is due, or the deletion is to be requested of
// Velero again.
func (r *backupRun) Wait(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, backupDecisions.Awaited(r.view))
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.signals, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	r.watch.Keep(ctx, selector, stall.RereadInterval(r.options), r.checkStall)

	r.keepRetryTimer(ctx)
	askAgain := false
	if r.retry != nil {
		selector.AddFuture(r.retry.due, func(workflow.Future) { askAgain = true })
	}
	selector.Select(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if askAgain {
		attempt := r.retry.attempt
		r.retry = nil
		return r.do(ctx, stepRequestDeletion, attempt+1)
	}
	return nil
}

func (r *backupRun) checkStall(ctx workflow.Context) workflow.Future {
	if r.view.Velero.Phase != stall.InProgress {
		return nil
	}
	return stall.Check(ctx, contract.CheckVeleroStall, contract.BackupStep{Ref: r.in.Ref})
}

// keepRetryTimer keeps a timer for the attempt that failed last, if another is to follow.
func (r *backupRun) keepRetryTimer(ctx workflow.Context) {
	delay := deletionRetryDelay(r.view)
	attempt := r.view.DeleteRequest.Attempt
	if r.retry != nil && (delay == 0 || r.retry.attempt != attempt) {
		r.retry.stop()
		r.retry = nil
	}
	if r.retry == nil && delay > 0 {
		timer, stop := workflow.WithCancel(ctx)
		r.retry = &retryTimer{attempt: attempt, due: workflow.NewTimer(timer, delay), stop: stop}
	}
}

// Drain implements entity.Object.
func (r *backupRun) Drain() int {
	return entity.DrainNoting(r.signals, func(changed contract.Changed) {
		r.in.Volumes = r.in.Volumes || changed.Volumes
		r.turn.Note(changed.Turn)
	})
}

// Carry implements entity.Object.
func (r *backupRun) Carry() any { return r.in }
