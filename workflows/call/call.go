package call

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// Limits of short Kubernetes activities. The regular form's policy is durable: it ends only by success, a permanent error or a
// cancellation.
const (
	localAttemptTimeout = 2 * time.Second
	callTimeout         = 5 * time.Second

	// RetryInterval is the wait after the first failure of a regular activity; it doubles up to RetryCap.
	RetryInterval = time.Second
	RetryCap      = 5 * time.Second
	// DefaultResourceTimeout is --resource-timeout if the worker sets none.
	DefaultResourceTimeout = 10 * time.Minute
)

// Limits are the worker's flags for every call. They are read when an activity is scheduled, so workers with different limits
// can share a task queue.
type Limits struct {
	// ResourceTimeout is how long one activity is retried before the workflow shows it and schedules the activity again; 10
	// minutes if zero.
	ResourceTimeout time.Duration
}

// Timeout is ResourceTimeout, or its default.
func (l Limits) Timeout() time.Duration {
	if l.ResourceTimeout <= 0 {
		return DefaultResourceTimeout
	}
	return l.ResourceTimeout
}

func (l Limits) options(attempt time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{StartToCloseTimeout: attempt, ScheduleToCloseTimeout: l.Timeout(), RetryPolicy: Retry()}
}

// Retry is the policy of regular activities that may be retried without a limit.
func Retry() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: RetryInterval, BackoffCoefficient: 2, MaximumInterval: RetryCap}
}

// LocalFirst runs a short, idempotent activity at the lowest cost: one local attempt, which leaves a single event in the
// history. If that fails and a retry may succeed, the same activity runs in the regular form, where the Web UI shows its
// attempts and last error, without a time limit.
func LocalFirst[In, Out any](ctx workflow.Context, limits Limits, activity contract.Activity[In, Out], in In) (Out, error) {
	return LocalFirstWithin(ctx, limits, callTimeout, activity, in)
}

// LocalFirstWithin is LocalFirst for an activity that may take longer: it limits an attempt of the regular form.
func LocalFirstWithin[In, Out any](
	ctx workflow.Context, limits Limits, attempt time.Duration, activity contract.Activity[In, Out], in In,
) (Out, error) {
	var out Out
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: localAttemptTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             activity.Summary,
	})
	err := workflow.ExecuteLocalActivity(local, activity.Name, in).Get(ctx, &out)
	if err == nil || final(err) {
		return out, err
	}
	workflow.GetLogger(ctx).Warn("activity failed, retrying durably", "activityType", activity.Name, "error", err)
	return durable(ctx, limits, attempt, activity, in)
}

// Durable runs an activity until it succeeds, fails permanently or is cancelled. After each --resource-timeout it counts a
// metric, shows the error in the current details, and schedules the activity again at once.
func Durable[In, Out any](ctx workflow.Context, limits Limits, activity contract.Activity[In, Out], in In) (Out, error) {
	return durable(ctx, limits, callTimeout, activity, in)
}

func durable[In, Out any](
	ctx workflow.Context, limits Limits, attempt time.Duration, activity contract.Activity[In, Out], in In,
) (Out, error) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Retrying:** %s. The pending activity shows the last error.", activity.Summary))
	return UntilDone(ctx, limits.options(attempt), activity, in)
}

// Recorded is Durable for an activity that depends on the history: on what a local activity has read, if this one removes it,
// or on the time, if this one gets it as its input. A worker that dies in a workflow task leaves no trace of that task's local
// activities.
func Recorded[In, Out any](ctx workflow.Context, limits Limits, activity contract.Activity[In, Out], in In) (Out, error) {
	return UntilDone(ctx, limits.options(callTimeout), activity, in)
}

// UntilDone schedules a regular activity again and again, each time with ScheduleToCloseTimeout, until it succeeds, fails
// permanently or is cancelled.
func UntilDone[In, Out any](
	ctx workflow.Context, options workflow.ActivityOptions, activity contract.Activity[In, Out], in In,
) (Out, error) {
	for {
		out, err := Execute(ctx, options, activity, in)
		if err == nil || final(err) {
			return out, err
		}
		workflow.GetMetricsHandler(ctx).WithTags(map[string]string{"activity_type": activity.Name}).
			Counter(contract.MetricResourceTimeouts).Inc(1)
		workflow.SetCurrentDetails(ctx, fmt.Sprintf(
			"**Retrying:** %s has failed for %s: %s. Holdfast keeps retrying. Check the API server and the worker's rights.",
			activity.Summary, options.ScheduleToCloseTimeout, Cause(err)))
	}
}

// Execute schedules a regular activity and waits for its end, successful or not.
func Execute[In, Out any](
	ctx workflow.Context, options workflow.ActivityOptions, activity contract.Activity[In, Out], in In,
) (out Out, err error) {
	err = Start(ctx, options, activity, in).Get(ctx, &out)
	return out, err
}

// Start schedules a regular activity. The future's value is an Out.
func Start[In, Out any](
	ctx workflow.Context, options workflow.ActivityOptions, activity contract.Activity[In, Out], in In,
) workflow.Future {
	options.Summary = activity.Summary
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activity.Name, in)
}

// final reports whether a retry is pointless (a permanent error) or unwanted (a cancellation).
func final(err error) bool {
	var application *temporal.ApplicationError
	return temporal.IsCanceledError(err) || (errors.As(err, &application) && application.NonRetryable())
}

// Cause is the message of the application error in err, without Temporal's wrapping.
func Cause(err error) string {
	var application *temporal.ApplicationError
	if errors.As(err, &application) {
		return application.Message()
	}
	return err.Error()
}
