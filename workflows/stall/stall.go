package stall

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
)

const (
	// MaxRereadInterval is how often a waiting workflow re-reads its objects, in case all signals are lost.
	MaxRereadInterval = 5 * time.Minute
	// InProgress is Velero's phase that ends only by Velero's last patch.
	InProgress        = "InProgress"
	stallCheckTimeout = 10 * time.Second
)

// Watch ends a wait for Velero at intervals, so that the objects are read again. Then, if due says so, it starts a check whether
// Velero has finished without updating its object. That is not a step, and nothing waits for it: a check that fails, for example
// because Velero is down, says nothing about the object, and the next interval starts the next one. A run that ends meanwhile
// does not cancel it: its result is written to the object.
func Watch[In, Out any](options call.Options, activity contract.Activity[In, Out], in In, due func() bool) entity.Waiter {
	var check workflow.Future // in progress
	reread := entity.Every(RereadInterval(options), func(ctx workflow.Context) {
		if check == nil && due() {
			check = call.Start(ctx, workflow.ActivityOptions{
				StartToCloseTimeout: stallCheckTimeout,
				RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
			}, activity, in)
		}
	})
	return func(ctx workflow.Context, selector workflow.Selector) {
		reread(ctx, selector)
		if check == nil {
			return
		}
		selector.AddFuture(check, func(done workflow.Future) {
			if err := done.Get(ctx, nil); err != nil {
				workflow.GetLogger(ctx).Warn("cannot check whether Velero has finished", "error", err)
			}
			check = nil
		})
	}
}

// RereadInterval is short enough for a stall to be reported in time, even if one check fails: a file of half the timeout's age
// counts, and two checks fit into the other half.
func RereadInterval(o call.Options) time.Duration {
	timeout := o.VeleroStallTimeout
	if timeout <= 0 {
		timeout = call.DefaultVeleroStallTimeout
	}
	return min(MaxRereadInterval, timeout/4)
}
