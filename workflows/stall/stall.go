package stall

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// MaxRereadInterval is how often a waiting workflow re-reads its objects, in case all signals are lost.
	MaxRereadInterval = 5 * time.Minute
	// InProgress is Velero's phase that ends only by Velero's last patch.
	InProgress        = "InProgress"
	stallCheckTimeout = 10 * time.Second
)

// Watch is what a workflow does while it waits for Velero: it re-reads its objects from time to time, and then checks whether
// Velero has finished without updating its object.
type Watch struct {
	reread workflow.Future // one timer, renewed only after it fired
	check  workflow.Future // the check for a stall in progress
}

// Keep adds its timer and check to a selector. check starts a check for a stall, or returns nil if none is needed.
func (w *Watch) Keep(
	ctx workflow.Context, selector workflow.Selector, interval time.Duration, check func(workflow.Context) workflow.Future,
) {
	if w.reread == nil {
		w.reread = workflow.NewTimer(ctx, interval)
	}
	selector.AddFuture(w.reread, func(workflow.Future) {
		w.reread = nil
		if w.check == nil {
			w.check = check(ctx)
		}
	})
	if w.check != nil {
		selector.AddFuture(w.check, func(done workflow.Future) {
			if err := done.Get(ctx, nil); err != nil {
				workflow.GetLogger(ctx).Warn("cannot check whether Velero has finished", "error", err)
			}
			w.check = nil
		})
	}
}

// Check starts a check whether Velero has finished without updating its object. It is not a step, and nothing waits for it: a
// check that fails, for example because Velero is down, says nothing about the object, and the next re-read starts the next
// one. A run that ends meanwhile does not cancel it: its result is written to the object.
func Check[In, Out any](ctx workflow.Context, check contract.Activity[In, Out], in In) workflow.Future {
	return call.Start(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: stallCheckTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	}, check, in)
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
