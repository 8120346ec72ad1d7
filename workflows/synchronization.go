package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// Limits of an activity that goes through all objects of a cluster.
const (
	passTimeout   = 10 * time.Minute
	passHeartbeat = 30 * time.Second
	passRetryCap  = 30 * time.Second
	// maxPasses and synchronizationLimit bound a run: what is left is the next one's.
	maxPasses            = 100
	synchronizationLimit = time.Hour
)

const synchronizationSummary = "Make NonAdminBackups for what Velero has found in the object stores"

// BackupSynchronization makes, once, the NonAdminBackups of Velero Backups that have none. A Schedule starts it.
func BackupSynchronization(
	ctx workflow.Context, in contract.SynchronizationInput, options Options,
) (contract.SynchronizationResult, error) {
	return synchronize(ctx, in, options, workflow.Now(ctx).Add(synchronizationLimit))
}

// synchronize repeats the activity as long as it says that there is more, and until the deadline.
func synchronize(
	ctx workflow.Context, in contract.SynchronizationInput, options Options, deadline time.Time,
) (contract.SynchronizationResult, error) {
	var total contract.SynchronizationResult
	for range maxPasses {
		next, err := pass[contract.SynchronizationResult](ctx, options, contract.ActivitySynchronizeBackups, synchronizationSummary, in)
		if err != nil {
			return total, err
		}
		total = total.Add(next)
		if !next.More || !workflow.Now(ctx).Before(deadline) {
			break
		}
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Made %d NonAdminBackups.", total.Made))
	return total, nil
}

// pass runs an activity that goes through all objects of a cluster, again and again until it succeeds.
func pass[Out any](ctx workflow.Context, o Options, activity, summary string, in any) (Out, error) {
	timeout := o.ResourceTimeout
	if timeout <= 0 {
		timeout = defaultResourceTimeout
	}
	timeout += passTimeout
	regular := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    passTimeout,
		HeartbeatTimeout:       passHeartbeat,
		ScheduleToCloseTimeout: timeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: passRetryCap,
		},
		Summary: summary,
	})
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Under way:** %s.", summary))
	return insist[Out](regular, timeout, activity, summary, in)
}
