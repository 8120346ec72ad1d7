package periodic

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// SynchronizationKind is the workflow that offers synced Velero Backups to their tenants.
var SynchronizationKind = kinds.Kind{
	Kind: contract.KindSynchronization, Activities: contract.Names(contract.SynchronizeBackups),
	Run: kinds.Completing(BackupSynchronization),
}

// Limits of an activity that goes through all objects of a cluster.
const (
	passTimeout   = 10 * time.Minute
	passHeartbeat = 30 * time.Second
	passRetryCap  = 30 * time.Second
	// maxBatches and synchronizationLimit bound a run: the next run does the rest.
	maxBatches           = 100
	synchronizationLimit = time.Hour
)

// BackupSynchronization makes, once, the NonAdminBackups of Velero Backups that have none. A Schedule starts it.
func BackupSynchronization(
	ctx workflow.Context, in contract.ScheduledInput, options call.Options,
) (contract.SynchronizationResult, error) {
	return synchronize(ctx, in, options, workflow.Now(ctx).Add(synchronizationLimit))
}

// synchronize repeats the activity until it says that nothing is left, or until the deadline.
func synchronize(
	ctx workflow.Context, in contract.ScheduledInput, options call.Options, deadline time.Time,
) (contract.SynchronizationResult, error) {
	var total contract.SynchronizationResult
	for range maxBatches {
		next, err := once(ctx, options.Limits, contract.SynchronizeBackups, in)
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

// once runs an activity that goes through all objects of a cluster, with retries until it succeeds.
func once[In, Out any](ctx workflow.Context, limits call.Limits, activity contract.Activity[In, Out], in In) (Out, error) {
	retry := call.Retry()
	retry.MaximumInterval = passRetryCap
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Under way:** %s.", activity.Summary))
	return call.UntilDone(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    passTimeout,
		HeartbeatTimeout:       passHeartbeat,
		ScheduleToCloseTimeout: limits.Timeout() + passTimeout,
		RetryPolicy:            retry,
	}, activity, in)
}
