package watch

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

const (
	// After the API server's return the informers may stay silent for up to a minute; live lists stand in for them.
	recoverySweeps        = 7
	recoverySweepInterval = 10 * time.Second
)

// recovery is the sweeps since one return of the API server.
type recovery struct {
	stop context.CancelFunc
	over chan struct{}
}

// Recovered is to be called when the API server has returned. It lists the objects live and signals for each that is
// not settled, now and until the informers have caught up. The sweeps since an earlier return end: an API server that comes
// and goes is never swept twice at a time.
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

// sweep looks at the objects of all kinds, one kind after the other, that the caches do not know as they are.
func (w *Watcher) sweep(ctx context.Context) error {
	var failed error
	for _, kind := range w.kinds {
		if ctx.Err() == nil {
			failed = errors.Join(failed, kind.Recover(ctx))
		}
	}
	return failed
}

// TemporalRecovered is to be called when Temporal has returned: it may have lost the workflows of objects that are not
// settled. All are looked at.
func (w *Watcher) TemporalRecovered(ctx context.Context) {
	if !w.watching.Load() {
		return // all are looked at then anyway
	}
	go func() {
		for _, kind := range w.kinds {
			kind.LookAtAll(ctx)
		}
	}()
}
