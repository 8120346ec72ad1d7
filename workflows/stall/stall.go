package stall

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// MaxRereadInterval is how often a workflow that waits looks for itself, should every signal be lost.
	MaxRereadInterval = 5 * time.Minute
	// InProgress is Velero's phase that only its own last patch ends.
	InProgress        = "InProgress"
	stallCheckTimeout = 10 * time.Second
)

// Watch is what a workflow that waits for Velero does meanwhile: it looks for itself from time to time, and then has it
// checked whether Velero has finished without saying so.
type Watch struct {
	reread workflow.Future // one timer, made anew only after it fired
	check  workflow.Future // the check for a stall that is under way
}

// Keep adds to a selector what the vigil waits for. check starts a check for a stall, or returns nil if there is no need.
func (v *Watch) Keep(
	ctx workflow.Context, selector workflow.Selector, interval time.Duration, check func(workflow.Context) workflow.Future,
) {
	if v.reread == nil {
		v.reread = workflow.NewTimer(ctx, interval)
	}
	selector.AddFuture(v.reread, func(workflow.Future) {
		v.reread = nil
		if v.check == nil {
			v.check = check(ctx)
		}
	})
	if v.check != nil {
		selector.AddFuture(v.check, func(done workflow.Future) {
			if err := done.Get(ctx, nil); err != nil {
				workflow.GetLogger(ctx).Warn("cannot tell whether Velero has finished", "error", err)
			}
			v.check = nil
		})
	}
}

// Check has looked whether Velero has finished without saying so. It is no step, and nothing waits for it: a check
// that fails, for example because Velero is away, says nothing about the object, and the next re-read brings the next one.
// A run that ends meanwhile leaves it to itself: what it writes is true whoever waits for it.
func Check[In, Out any](ctx workflow.Context, check contract.Activity[In, Out], in In) workflow.Future {
	return call.Start(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: stallCheckTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	}, check, in)
}

// RereadInterval is short enough for a stall to be told in time, even if one check fails: a file of half the timeout's age
// counts, and two checks fall into the other half.
func RereadInterval(o call.Options) time.Duration {
	timeout := o.VeleroStallTimeout
	if timeout <= 0 {
		timeout = call.DefaultVeleroStallTimeout
	}
	return min(MaxRereadInterval, timeout/4)
}
