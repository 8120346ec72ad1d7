package periodic

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// SynchronizationKind is the workflow that offers again what Velero has brought back.
var SynchronizationKind = kinds.Kind{
	Kind: contract.KindSynchronization, Activities: contract.Names(contract.SynchronizeBackups),
	Run: kinds.Completing(BackupSynchronization),
}

// Limits of an activity that goes through all objects of a cluster.
const (
	passTimeout   = 10 * time.Minute
	passHeartbeat = 30 * time.Second
	passRetryCap  = 30 * time.Second
	// maxPasses and synchronizationLimit bound a run: what is left is the next one's.
	maxPasses            = 100
	synchronizationLimit = time.Hour
)

// BackupSynchronization makes, once, the NonAdminBackups of Velero Backups that have none. A Schedule starts it.
func BackupSynchronization(
	ctx workflow.Context, in contract.SynchronizationInput, options call.Options,
) (contract.SynchronizationResult, error) {
	return synchronize(ctx, in, options, workflow.Now(ctx).Add(synchronizationLimit))
}

// synchronize repeats the activity as long as it says that there is more, and until the deadline.
func synchronize(
	ctx workflow.Context, in contract.SynchronizationInput, options call.Options, deadline time.Time,
) (contract.SynchronizationResult, error) {
	var total contract.SynchronizationResult
	for range maxPasses {
		next, err := pass(ctx, options.Limits, contract.SynchronizeBackups, in)
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
func pass[In, Out any](ctx workflow.Context, limits call.Limits, activity contract.Activity[In, Out], in In) (Out, error) {
	retry := call.Retry()
	retry.MaximumInterval = passRetryCap
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Under way:** %s.", activity.Summary))
	return call.Insist(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    passTimeout,
		HeartbeatTimeout:       passHeartbeat,
		ScheduleToCloseTimeout: limits.Timeout() + passTimeout,
		RetryPolicy:            retry,
	}, activity, in)
}
