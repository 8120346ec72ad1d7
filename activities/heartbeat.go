package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// beatInterval is far shorter than the workflows' heartbeat timeouts.
const beatInterval = 2 * time.Second

// Beating heartbeats until stop is called, so that the loss of a worker is noticed long before an attempt's timeout, however
// long a step takes. A step that hangs is ended by its own limit and the attempt's.
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
