package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/connect"
)

// The values of --approve-through-temporal.
const (
	approveAuto   = "auto"
	approveAlways = "always"
	approveNever  = "never"
)

const (
	anonymousTimeout  = 10 * time.Second
	anonymousInterval = 2 * time.Minute
	// anonymousRetry is the interval while nothing is known.
	anonymousRetry = 10 * time.Second
)

var (
	errDecisionsNever = errors.New("--approve-through-temporal is never")
	errDecisionsEarly = errors.New("not tested yet whether Temporal refuses callers without credentials")
)

// decisions knows whether Temporal's Updates and signals may decide about storage locations.
type decisions struct {
	log *zap.Logger
	// test returns whether Temporal refuses callers without credentials, as connect.Temporal's RefusesAnonymous does.
	test func(context.Context) error

	mutex sync.Mutex
	off   error
}

func newDecisions(log *zap.Logger, test func(context.Context) error) *decisions {
	return &decisions{log: log, test: test, off: errDecisionsEarly}
}

// watch returns when it is known for the first time what Off is to answer, and keeps it so until ctx ends.
func (d *decisions) watch(ctx context.Context, mode string) {
	switch mode {
	case approveAlways:
		d.become(nil)
	case approveNever:
		d.become(errDecisionsNever)
	default:
		pause := d.check(ctx)
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(pause):
					pause = d.check(ctx)
				}
			}
		}()
	}
}

// check checks once, and returns how long to wait before the next check.
func (d *decisions) check(ctx context.Context) time.Duration {
	limited, cancel := context.WithTimeout(ctx, anonymousTimeout)
	err := d.test(limited)
	cancel()
	if ctx.Err() != nil {
		return anonymousRetry // the end of the process says nothing about Temporal
	}
	d.become(err)
	if err == nil || errors.Is(err, connect.ErrAnonymousAllowed) {
		return anonymousInterval
	}
	return anonymousRetry
}

func (d *decisions) become(off error) {
	d.mutex.Lock()
	before := d.off
	d.off = off
	d.mutex.Unlock()
	metrics.SetDecisionsThroughTemporal(off == nil)
	switch {
	case off == nil && before != nil:
		d.log.Info("decisions through Temporal count")
	case off != nil && (before == nil || before.Error() != off.Error()):
		d.log.Info("decisions through Temporal do not count", zap.Error(off))
	}
}

// Off returns why Temporal's Updates and signals may not decide, nil while they may.
func (d *decisions) Off() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.off
}
