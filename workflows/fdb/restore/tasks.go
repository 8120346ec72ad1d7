package restore

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

const (
	// restoreTasksDeadline is how long the tasks after the end of a restore may take together.
	restoreTasksDeadline = 10 * time.Minute
	// restoreTaskAttempt is the least time of a task, so that after the deadline it can report what it has waited for.
	restoreTaskAttempt = 2 * time.Minute
)

// taskNames returns the tasks of the worker that begins them: a worker with other tasks that continues the run keeps to these.
func taskNames(ctx workflow.Context) (names []string, err error) {
	err = workflow.SideEffect(ctx, func(workflow.Context) any { return contract.FDBRestoreTasks() }).Get(&names)
	return names, err
}

// finalize runs the tasks after the end of a restore, in their order, each no matter what those before it found. First it writes
// that they run: from then on nothing of the destination's restore is needed. An event interrupts them; they may be repeated.
func (r *restoreRun) finalize(ctx workflow.Context) error {
	names, err := taskNames(ctx)
	if err != nil {
		return err
	}
	r.tasks = nil
	for _, name := range names {
		r.tasks = append(r.tasks, contract.RecordedTask{Name: name, Phase: TaskInProgress})
	}
	if err := r.publish(ctx); err != nil || Settled(r.View) || r.View.BeingDeleted {
		return err
	}
	deadline := workflow.Now(ctx).Add(restoreTasksDeadline)
	for i := range r.tasks {
		r.tasks[i].StartedAt = workflow.Now(ctx)
		outcome, done, err := r.runTask(ctx, r.tasks[i].Name, deadline)
		if err != nil {
			return err
		}
		if !done || outcome.Gone {
			r.postponed = true
			return nil
		}
		r.tasks[i].EndedAt, r.tasks[i].Phase = workflow.Now(ctx), TaskCompleted
		r.tasks[i].Warnings = outcome.Warnings.All()
		if r.tasks[i].Errors = outcome.Errors.All(); len(r.tasks[i].Errors) > 0 {
			r.tasks[i].Phase = TaskFailed
		}
	}
	return nil
}

// runTask runs one task, and reports whether it has ended: an event that comes first interrupts it.
func (r *restoreRun) runTask(
	ctx workflow.Context, name string, deadline time.Time,
) (outcome contract.FinalizationOutcome, done bool, err error) {
	running, cancel := workflow.WithCancel(ctx)
	defer cancel()
	retry := call.Retry()
	retry.MaximumInterval = runningInterval
	task := call.Start(running, workflow.ActivityOptions{
		TaskQueue:              contract.FDBTaskQueue(r.In.Cluster),
		ScheduleToCloseTimeout: max(0, deadline.Sub(workflow.Now(ctx))) + restoreTaskAttempt,
		StartToCloseTimeout:    restoreTaskAttempt,
		HeartbeatTimeout:       requests.Heartbeat,
		RetryPolicy:            retry,
	}, contract.FinalizeFDBRestore.WithSummary("Check the end of the restore: "+name),
		contract.FDBRestoreTaskStep{Ref: r.In.Ref, Task: name, Deadline: deadline})
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(task, func(workflow.Future) { done = true })
	selector.AddReceive(r.Changed, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.Select(ctx)
	if ctx.Err() != nil || !done {
		return outcome, false, ctx.Err()
	}
	if err := task.Get(ctx, &outcome); err != nil {
		if temporal.IsCanceledError(err) {
			return outcome, false, err
		}
		problem := requests.FailureOf(r.In.Cluster, err).Message
		outcome.Errors.Cluster = []string{fmt.Sprintf("%s could not be checked: %s", name, problem)}
	}
	return outcome, true, nil
}
