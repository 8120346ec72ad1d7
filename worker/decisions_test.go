package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/workflows/connect"
)

func TestDecisionsThroughTemporalCountWhileAnonymousCallersAreRefused(t *testing.T) {
	away := errors.New("connection refused")
	open := fmt.Errorf("127.0.0.1:7233 %w", connect.ErrAnonymousAllowed)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var asked atomic.Int32
		var answer atomic.Pointer[error]
		core, logs := observer.New(zap.InfoLevel)
		d := newDecisions(zap.New(core), func(ctx context.Context) error {
			_, limited := ctx.Deadline()
			assert.True(t, limited)
			asked.Add(1)
			return *answer.Load()
		})
		require.ErrorIs(t, d.Off(), errDecisionsEarly)
		answer.Store(&away)
		d.watch(ctx, approveAuto)
		require.ErrorIs(t, d.Off(), away, "the first answer is there when watch returns")
		for _, step := range []struct {
			answer error
			within time.Duration // of the last look
		}{{nil, anonymousRetry}, {away, anonymousInterval}, {open, anonymousRetry}, {nil, anonymousInterval}} {
			before, looks := d.Off(), asked.Load()
			answer.Store(&step.answer)
			time.Sleep(step.within - time.Nanosecond)
			synctest.Wait()
			assert.Equal(t, looks, asked.Load())
			assert.Equal(t, before, d.Off())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			assert.Equal(t, looks+1, asked.Load())
			assert.Equal(t, step.answer, d.Off())
			want := 0.0
			if step.answer == nil {
				want = 1
			}
			assert.InDelta(t, want, metricstest.Value(t, "holdfast_decisions_through_temporal"), 0)
		}
		time.Sleep(time.Hour)
		var lines []string
		for _, entry := range logs.All() {
			lines = append(lines, entry.Message)
		}
		const count, not = "decisions through Temporal count", "decisions through Temporal do not count"
		assert.Equal(t, []string{not, count, not, not, count}, lines, "an hour of the same is no line")
	})
}

// A worker that ends interrupts its question; what it was told before holds for the decisions in flight.
func TestTheEndOfTheProcessSaysNothingAboutTemporal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		asked := 0
		d := newDecisions(zap.NewNop(), func(ctx context.Context) error {
			if asked++; asked > 1 {
				stop()
			}
			return ctx.Err()
		})
		d.watch(ctx, approveAuto)
		time.Sleep(anonymousInterval)
		synctest.Wait()
		assert.Equal(t, 2, asked)
		require.NoError(t, d.Off())
	})
}

func TestTheOperatorMayDecideWhetherDecisionsCount(t *testing.T) {
	for mode, want := range map[string]error{approveAlways: nil, approveNever: errDecisionsNever} {
		d := newDecisions(zap.NewNop(), func(context.Context) error { panic("nobody is to be asked") })
		d.watch(t.Context(), mode)
		assert.Equal(t, want, d.Off(), mode)
	}
}
