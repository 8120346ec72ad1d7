package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// beatInterval is far less than what the workflows wait for a heartbeat.
const beatInterval = 2 * time.Second

// Beating tells Temporal again and again, until stop is called, that the worker lives: the loss of one is noticed long before an
// attempt's limit, whatever a step takes. That a step hangs, its own limit and the attempt's tell.
func Beating(ctx context.Context) (stop func()) {
	return repeating(ctx, beatInterval, func() { activity.RecordHeartbeat(ctx) })
}

// repeating calls do at once and then again and again until stop is called or ctx ends.
func repeating(ctx context.Context, every time.Duration, do func()) (stop func()) {
	do()
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
				do()
			}
		}
	})
	return func() {
		close(done)
		group.Wait()
	}
}
