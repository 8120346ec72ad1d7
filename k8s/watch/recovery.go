package watch

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

const (
	// After an outage of the API server the informers may stay silent for up to a minute; live lists replace them.
	recoverySweeps        = 7
	recoverySweepInterval = 10 * time.Second
)

// recovery is the sweeps after one outage of the API server.
type recovery struct {
	stop context.CancelFunc
	over chan struct{}
}

// Recovered is called when the API server is available again. It lists the objects live and signals for each that is not
// settled, now and until the informers have caught up. It ends the sweeps of an earlier call, so that there are never two at a
// time.
func (w *Watcher) Recovered(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	own := &recovery{stop: stop, over: make(chan struct{})}
	earlier := w.recovery.Swap(own)
	go func() {
		defer close(own.over)
		defer stop()
		if earlier != nil {
			earlier.stop()
			<-earlier.over
		}
		for range recoverySweeps {
			if ctx.Err() != nil {
				return
			}
			if err := w.sweep(ctx); err != nil && ctx.Err() == nil {
				w.Log.Warn("live sweep after the API server's return", zap.Error(err))
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(recoverySweepInterval):
			}
		}
	}()
}

// sweep judges the objects of all kinds, one kind after the other, for which the caches are out of date.
func (w *Watcher) sweep(ctx context.Context) error {
	var failed error
	for _, kind := range w.kinds {
		if ctx.Err() == nil {
			failed = errors.Join(failed, kind.Recover(ctx))
		}
	}
	return failed
}

// TemporalRecovered is called when Temporal is available again: it may have lost the workflows of objects that are not settled.
// All objects are judged.
func (w *Watcher) TemporalRecovered(ctx context.Context) {
	if !w.watching.Load() {
		return // all are judged then anyway
	}
	go func() {
		for _, kind := range w.kinds {
			kind.RequeueAll(ctx)
		}
	}()
}
