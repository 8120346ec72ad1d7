package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// Limits of short Kubernetes activities. The regular form's policy is durable: it ends only by success, a permanent
// error or a cancellation.
const (
	localAttemptTimeout = 2 * time.Second
	callTimeout         = 5 * time.Second
	retryInterval       = time.Second
	retryCap            = 5 * time.Second

	// defaultResourceTimeout is --resource-timeout unless the worker says otherwise.
	defaultResourceTimeout = 10 * time.Minute
	// defaultVeleroStallTimeout is --velero-stall-timeout unless the worker says otherwise.
	defaultVeleroStallTimeout = 15 * time.Minute
)

// Options are what the worker's flags tell the workflows. They are read when an activity is scheduled and shape nothing
// but its timeouts and timers, so workers with different options can share a task queue.
type Options struct {
	// ResourceTimeout is how long one activity is retried before the workflow says so and schedules it anew.
	ResourceTimeout time.Duration
	// VeleroStallTimeout is how long a finished backup may look unfinished before that is told; 15 minutes if zero.
	VeleroStallTimeout time.Duration
	// FDBStatusInterval is the longest time between two looks at a FoundationDB backup; 5 minutes if zero.
	FDBStatusInterval time.Duration
	// FDBSnapshotTimeout is how long a first snapshot may stand still before it gives its slot back; 30 minutes if zero.
	FDBSnapshotTimeout time.Duration
	// RestoreReadyTimeout is how long restored volumes and workloads are waited for; 10 minutes if zero.
	RestoreReadyTimeout time.Duration
	// FDBSnapshotLimit is how many first snapshots of FoundationDB run at a time; 1 if zero. It goes through the history.
	FDBSnapshotLimit int
	// FDBExpiryLimit is how many turns of the queue of expirations run at a time; 1 if zero. It goes through the history, as do
	// FDBExpiryRetryInterval, how long the queue waits for a free place at most, and until a turn that could not run is tried again
	// (10 minutes if zero), FDBExpiryMinInterval, the shortest time between two expirations of a backup (1 hour if zero), and
	// FDBExpiryTimeout, how long a turn's pod may run (1 hour if zero).
	FDBExpiryLimit         int
	FDBExpiryRetryInterval time.Duration
	FDBExpiryMinInterval   time.Duration
	FDBExpiryTimeout       time.Duration
}

// rereadInterval is short enough for a stall to be told in time, even if one check fails: a file of half the timeout's age
// counts, and two checks fall into the other half.
func (o Options) rereadInterval() time.Duration {
	timeout := o.VeleroStallTimeout
	if timeout <= 0 {
		timeout = defaultVeleroStallTimeout
	}
	return min(maxRereadInterval, timeout/4)
}

// localFirst runs a short, idempotent activity at the lowest cost: one local attempt, which leaves a single event in the
// history. If that fails for a cause that may pass, the same activity runs in the regular form, where the Web UI shows
// its attempts and last error, for as long as it takes.
func localFirst[Out any](ctx workflow.Context, o Options, activity, summary string, in any) (Out, error) {
	var out Out
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: localAttemptTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             summary,
	})
	err := workflow.ExecuteLocalActivity(local, activity, in).Get(ctx, &out)
	if err == nil || final(err) {
		return out, err
	}
	workflow.GetLogger(ctx).Warn("activity failed, retrying durably", "activityType", activity, "error", err)
	return durable[Out](ctx, o, activity, summary, in)
}

// durable runs an activity until it succeeds, fails for good or is cancelled. Each time --resource-timeout has passed it
// counts a metric, says so in the current details, and schedules the activity again at once.
func durable[Out any](ctx workflow.Context, o Options, activity, summary string, in any) (Out, error) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Retrying:** %s. The pending activity shows the last error.", summary))
	return recorded[Out](ctx, o, activity, summary, in)
}

// recorded is durable for an activity that may not begin before what it follows from is in the history: what a local one has
// read, if this one takes that away, or the time, if it says which. A worker that dies amid a workflow task leaves nothing of it.
func recorded[Out any](ctx workflow.Context, o Options, activity, summary string, in any) (Out, error) {
	timeout := o.ResourceTimeout
	if timeout <= 0 {
		timeout = defaultResourceTimeout
	}
	regular := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    callTimeout,
		ScheduleToCloseTimeout: timeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    retryInterval,
			BackoffCoefficient: 2,
			MaximumInterval:    retryCap,
		},
		Summary: summary,
	})
	return insist[Out](regular, timeout, activity, summary, in)
}

// insist schedules a regular activity again and again, with the options in ctx, until it succeeds, fails for good or is
// cancelled.
func insist[Out any](ctx workflow.Context, timeout time.Duration, activity, summary string, in any) (Out, error) {
	for {
		var out Out
		err := workflow.ExecuteActivity(ctx, activity, in).Get(ctx, &out)
		if err == nil || final(err) {
			return out, err
		}
		workflow.GetMetricsHandler(ctx).WithTags(map[string]string{"activity_type": activity}).
			Counter(contract.MetricResourceTimeouts).Inc(1)
		workflow.SetCurrentDetails(ctx, fmt.Sprintf(
			"**Retrying:** %s has not succeeded for %s: %s. It is tried on; check the API server and the worker's rights.",
			summary, timeout, cause(err)))
	}
}

// final reports whether repeating an activity is pointless (a permanent error) or unwanted (a cancellation).
func final(err error) bool {
	var application *temporal.ApplicationError
	return temporal.IsCanceledError(err) || (errors.As(err, &application) && application.NonRetryable())
}

// cause is the message of the application error in err, without Temporal's wrapping.
func cause(err error) string {
	var application *temporal.ApplicationError
	if errors.As(err, &application) {
		return application.Message()
	}
	return err.Error()
}
