package entity

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// Waiter adds to a selector what else ends a wait. It is called for every wait, so what outlasts a wait is its own to keep.
type Waiter func(workflow.Context, workflow.Selector)

// Block shows what the object waits for, and waits for a signal or what the Waiters wait for.
func (r *Run[In, Args, View]) Block(ctx workflow.Context) error {
	if r.kind.Awaited != nil {
		workflow.SetCurrentDetails(ctx, r.kind.Awaited(r.View))
	}
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.Changed, func(workflow.ReceiveChannel, bool) {})
	for _, signals := range r.Others {
		selector.AddReceive(signals, func(workflow.ReceiveChannel, bool) {})
	}
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	for _, add := range r.Waiters {
		add(ctx, selector)
	}
	selector.Select(ctx)
	return ctx.Err()
}

// BlockFor is Block for at most that time; fired is called if it is over. Each wait has a timer of its own.
func (r *Run[In, Args, View]) BlockFor(ctx workflow.Context, most time.Duration, fired func()) error {
	timing, cancel := workflow.WithCancel(ctx)
	defer cancel()
	r.Waiters = []Waiter{func(_ workflow.Context, selector workflow.Selector) {
		selector.AddFuture(workflow.NewTimer(timing, most), func(workflow.Future) { fired() })
	}}
	return r.Block(ctx)
}

// Every ends a wait at intervals, and calls fired then. It keeps one timer, renewed only after it has fired: signals must not
// fill the history with timers.
func Every(interval time.Duration, fired func(workflow.Context)) Waiter {
	var timer workflow.Future
	return func(ctx workflow.Context, selector workflow.Selector) {
		if timer == nil {
			timer = workflow.NewTimer(ctx, interval)
		}
		selector.AddFuture(timer, func(workflow.Future) {
			timer = nil
			fired(ctx)
		})
	}
}
