package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// maxStepsInARow limits local activities between two waits: they all run again after a kill.
	maxStepsInARow = 4
	// breather is the wait after that many steps.
	breather = time.Second
)

// breathe waits after so many steps, and reports whether they are to be broken off: steps that come to nothing, again and again,
// must not fill the history.
func breathe(ctx workflow.Context) (full bool, err error) {
	if err := workflow.Sleep(ctx, breather); err != nil {
		return false, err
	}
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested(), nil
}

// NonAdminBackup serves one NonAdminBackup from its creation, or any later event, until it is settled; the next event
// starts it again under the same ID. It is the only writer of the object's status but for the queue position.
//
// A failing activity is retried for ever if the cause may pass; a spec that will never do is a condition on the object.
// Only a status that the API server calls invalid fails a run, for all to see: the next event or resync starts another.
func NonAdminBackup(ctx workflow.Context, in contract.BackupInput, options Options) error {
	run := &backupRun{in: in, options: options, signals: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.BackupState, error) {
		return contract.BackupState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	return run.serve(ctx)
}

// backupRun is the state of one run. Nothing in it outlives the run but what BackupInput carries over.
type backupRun struct {
	in      contract.BackupInput
	options Options
	signals workflow.ReceiveChannel
	view    contract.BackupView
	vigil   vigil
	retry   *retryTimer
}

// retryTimer runs until a refused deletion is asked for again. Signals must not put it off, so it outlasts them.
type retryTimer struct {
	attempt int
	due     workflow.Future
	stop    workflow.CancelFunc
}

func (r *backupRun) serve(ctx workflow.Context) error {
	for {
		r.drain()
		step, err := r.act(ctx)
		if err != nil {
			return err
		}
		if err := r.show(ctx); err != nil {
			return err
		}
		// From an empty drain to the return nothing may yield: an event that came meanwhile would be lost.
		if step == stepSettled {
			if r.drain() == 0 {
				return nil
			}
			continue
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			if r.drain() == 0 {
				return workflow.NewContinueAsNewError(ctx, contract.WorkflowBackup, r.in)
			}
			continue
		}
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
}

// act reads the present state and takes every step that is due. It returns stepSettled, or stepWait when the run cannot
// or should not go on at once.
func (r *backupRun) act(ctx workflow.Context) (backupStep, error) {
	if err := r.do(ctx, contract.ActivityRefreshBackup, 0); err != nil {
		return "", err
	}
	for taken := 1; ; taken++ {
		step := nextBackupStep(r.view)
		if step == stepWait || step == stepSettled {
			return step, nil
		}
		if taken%maxStepsInARow == 0 {
			if full, err := breathe(ctx); full || err != nil {
				return stepWait, err
			}
		}
		if err := r.do(ctx, step, 1); err != nil {
			return "", err
		}
	}
}

func (r *backupRun) do(ctx workflow.Context, step backupStep, attempt int) error {
	view, err := localFirst[contract.BackupView](ctx, r.options, string(step), backupSummaries[step],
		contract.BackupStep{Ref: r.in.Ref, Attempt: attempt, Volumes: r.in.Volumes})
	if err != nil {
		return err
	}
	r.view = view
	if view.Flow == 0 {
		return r.show(ctx)
	}
	return nil
}

// show brings the search attributes up to date when a phase changed.
func (r *backupRun) show(ctx workflow.Context) error {
	var updates []temporal.SearchAttributeUpdate
	if phase := r.view.Phase; phase != "" && phase != r.in.ShownPhase {
		updates = append(updates, contract.AttributePhase.ValueSet(phase))
		r.in.ShownPhase = phase
	}
	if phase := r.view.Velero.Phase; phase != "" && phase != r.in.ShownVeleroPhase {
		updates = append(updates, contract.AttributeVeleroPhase.ValueSet(phase))
		r.in.ShownVeleroPhase = phase
	}
	if len(updates) == 0 {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

// wait blocks until a signal comes, it is time to re-read, or it is time to ask Velero again to delete the backup.
func (r *backupRun) wait(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, awaited(r.view))
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.signals, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	r.vigil.keep(ctx, selector, r.options.rereadInterval(), r.checkStall)

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
	if r.view.Flow == 0 || r.view.Velero.Phase != inProgress {
		return nil
	}
	return checkStall(ctx, contract.ActivityCheckVeleroStall, backupSummaries[contract.ActivityCheckVeleroStall],
		contract.BackupStep{Ref: r.in.Ref})
}

// keepRetryTimer has a timer run for the attempt that failed last, if one is to be followed by another.
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

func (r *backupRun) drain() int { return drainNoting(r.signals, &r.in.Volumes) }
