package finalization

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

const (
	// defaultRestoreReadyTimeout is Options.RestoreReadyTimeout if the worker sets none.
	defaultRestoreReadyTimeout = 10 * time.Minute
	// finalizationGrace is the least time for a task, however long the tasks before it have waited, unless all together have
	// less.
	finalizationGrace = time.Minute
	// taskHeartbeat is how long it takes until a task is retried after its worker was killed. A running task heartbeats more
	// often.
	taskHeartbeat = 10 * time.Second
	// publishTimeout limits one attempt to update the results in the object store.
	publishTimeout = 2 * time.Minute
	// maxShownLines limits how many messages of a task the status shows.
	maxShownLines = 20
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindFinalization,
	Activities: contract.Names(
		contract.PlanFinalization, contract.RunFinalizationTask, contract.PublishFinalization, contract.RecordFinalization,
	),
	Run: kinds.Completing(Workflow),
}

// Workflow is the finalization of a restore: the tasks of the plan, one after the other, each until it has ended; then their
// findings go into the restore's results, once. It ends Completed, or PartiallyFailed if Velero or a task had errors. It ends
// at once, without a phase, when the object is deleted or being deleted.
func Workflow(
	ctx workflow.Context, in contract.ObjectInput, options call.Options,
) (contract.FinalizationResult, error) {
	run := &finalizationRun{in: in, options: options}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FinalizationState, error) {
		return contract.FinalizationState{Record: run.record}, nil
	})
	if err != nil {
		return contract.FinalizationResult{}, err
	}
	return run.serve(ctx)
}

type finalizationRun struct {
	in       contract.ObjectInput
	options  call.Options
	plan     contract.FinalizationPlan
	deadline time.Time
	grace    time.Duration
	record   contract.FinalizationRecord
	found    []contract.PublishedLines
}

func (r *finalizationRun) serve(ctx workflow.Context) (contract.FinalizationResult, error) {
	var none contract.FinalizationResult
	plan, err := call.LocalFirst(ctx, r.options.Limits, contract.PlanFinalization, contract.ObjectStep{Ref: r.in.Ref})
	if err != nil || !plan.Due {
		return plan.Ended, err
	}
	r.begin(ctx, plan)
	for i := range plan.Tasks {
		gone, err := r.do(ctx, i)
		if err != nil || gone {
			return none, err
		}
	}
	if err := r.publish(ctx); err != nil {
		return none, err
	}
	r.record.Phase = string(oadpv1alpha1.FinalizationPhaseCompleted)
	if plan.VeleroFailed || r.record.Errors > 0 {
		r.record.Phase = string(oadpv1alpha1.FinalizationPhasePartiallyFailed)
	}
	r.record.EndedAt = workflow.Now(ctx)
	return r.write(ctx)
}

func (r *finalizationRun) begin(ctx workflow.Context, plan contract.FinalizationPlan) {
	ready := r.options.RestoreReadyTimeout
	if ready <= 0 {
		ready = defaultRestoreReadyTimeout
	}
	r.plan = plan
	r.deadline, r.grace = workflow.Now(ctx).Add(ready), min(finalizationGrace, ready)
	r.record = contract.FinalizationRecord{Ref: r.in.Ref, StartedAt: workflow.Now(ctx)}
	for _, task := range plan.Tasks {
		r.record.Tasks = append(r.record.Tasks, contract.RecordedTask{
			Name: task.Name, Phase: string(oadpv1alpha1.FinalizationPhaseNew),
		})
	}
}

// do runs one task to its end and records its findings. A task that can never succeed is an error of the restore, not the end
// of the finalization.
func (r *finalizationRun) do(ctx workflow.Context, i int) (gone bool, err error) {
	task, recorded := r.plan.Tasks[i], &r.record.Tasks[i]
	recorded.Phase, recorded.StartedAt = string(oadpv1alpha1.FinalizationPhaseInProgress), workflow.Now(ctx)
	r.record.Phase = string(oadpv1alpha1.FinalizationPhaseFinalizing)
	if r.plan.VeleroFailed || r.record.Errors > 0 {
		r.record.Phase = string(oadpv1alpha1.FinalizationPhaseFinalizingPartiallyFailed)
	}
	if _, err := r.write(ctx); err != nil {
		return false, err
	}
	workflow.SetCurrentDetails(ctx, r.details())
	deadline := r.deadlineOf(ctx)
	outcome, err := call.UntilDone(ctx, r.patient(task.Timeout, deadline.Sub(workflow.Now(ctx))),
		contract.RunFinalizationTask.WithSummary(task.Name+": "+task.Summary),
		contract.FinalizationTaskStep{Ref: r.in.Ref, Task: task.Name, Deadline: deadline})
	switch {
	case temporal.IsCanceledError(err):
		return false, err
	case err != nil:
		outcome.Errors.Velero = append(outcome.Errors.Velero, call.Cause(err))
	case outcome.Gone:
		return true, nil
	}
	r.note(ctx, recorded, outcome)
	return false, nil
}

func (r *finalizationRun) note(ctx workflow.Context, recorded *contract.RecordedTask, outcome contract.FinalizationOutcome) {
	recorded.EndedAt = workflow.Now(ctx)
	recorded.Phase = string(oadpv1alpha1.FinalizationPhaseCompleted)
	if outcome.Errors.Count() > 0 {
		recorded.Phase = string(oadpv1alpha1.FinalizationPhasePartiallyFailed)
	}
	recorded.Warnings, recorded.Errors = firstLines(outcome.Warnings.All()), firstLines(outcome.Errors.All())
	r.record.Warnings += outcome.Warnings.Count()
	r.record.Errors += outcome.Errors.Count()
	r.record.LeftOut += outcome.LeftOut
	r.record.Refused += outcome.Refused
	r.record.Shadowed = append(r.record.Shadowed, outcome.Shadowed...)
	r.found = append(r.found, contract.PublishedLines{
		Task: recorded.Name, Warnings: outcome.Warnings, Errors: outcome.Errors,
	})
}

// publish adds the findings to the results in the object store, and reads Velero's errors there.
func (r *finalizationRun) publish(ctx workflow.Context) error {
	if r.record.Warnings+r.record.Errors == 0 && !r.plan.VeleroFailed {
		return nil
	}
	deadline := r.deadlineOf(ctx)
	published, err := call.UntilDone(ctx, r.patient(publishTimeout, deadline.Sub(workflow.Now(ctx))),
		contract.PublishFinalization, contract.FinalizationPublication{Ref: r.in.Ref, Tasks: r.found, Deadline: deadline})
	switch {
	case temporal.IsCanceledError(err):
		return err
	case err != nil:
		published.Problem = call.Cause(err)
	}
	r.record.VeleroErrors, r.record.Problem = published.VeleroErrors, published.Problem
	return nil
}

// deadlineOf is until when an activity that starts now may wait.
func (r *finalizationRun) deadlineOf(ctx workflow.Context) time.Time {
	if least := workflow.Now(ctx).Add(r.grace); r.deadline.Before(least) {
		return least
	}
	return r.deadline
}

func (r *finalizationRun) write(ctx workflow.Context) (contract.FinalizationResult, error) {
	result, err := call.LocalFirst(ctx, r.options.Limits,
		contract.RecordFinalization.WithSummary("Write the status: "+r.record.Phase), r.record)
	if err != nil {
		return contract.FinalizationResult{}, err
	}
	return result, entity.Show(ctx, &r.in, r.record.Phase, "")
}

// details says in Markdown how far the finalization is.
func (r *finalizationRun) details() string {
	text := fmt.Sprintf("**%s:** the pending activity shows what is waited for, until %s at the latest.\n\n",
		r.record.Phase, r.deadline.UTC().Format(time.RFC3339))
	for i, task := range r.record.Tasks {
		text += fmt.Sprintf("- `%s` %s: %s (%d warnings, %d errors)\n", task.Name, task.Phase, r.plan.Tasks[i].Summary,
			len(task.Warnings), len(task.Errors))
	}
	return text
}

func firstLines(lines []string) []string {
	if len(lines) <= maxShownLines {
		return lines
	}
	return append(lines[:maxShownLines-1:maxShownLines-1],
		fmt.Sprintf("and %d more, in the restore's results", len(lines)-maxShownLines+1))
}

// patient are the options of an activity that may take long, with heartbeats: attempt limits one attempt, and wait is how long
// it may wait in addition.
func (r *finalizationRun) patient(attempt, wait time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout:    attempt,
		HeartbeatTimeout:       min(taskHeartbeat, attempt),
		ScheduleToCloseTimeout: r.options.Timeout() + wait,
		RetryPolicy:            call.Retry(),
	}
}
