package watch

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

// A watcher that has lost a right sees nothing new, while its caches stay filled: it must not look ready.
func TestAWatcherThatMayNotWatchIsNotReady(t *testing.T) {
	const series = `holdfast_access_denied_total{activity_type="watch"}`
	tests := map[string]struct {
		err     error
		refused float64
	}{
		"Forbidden":        {errNoRight, 1},
		"a list Forbidden": {fmt.Errorf("failed to list: %w", errNoRight), 1},
		"Unauthorized":     {apierrors.NewUnauthorized("token expired"), 1},
		"away":             {errAway, 0},
		"expired":          {apierrors.NewResourceExpired("too old resource version"), 0},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := newStation(t)
			s.watching.Store(true)
			assert.InDelta(t, test.refused, metricstest.Counted(t, series, func() { s.Refusals.Take(test.err) }), 0)
			if test.refused == 0 {
				require.NoError(t, s.Watching(t.Context()))
				return
			}
			require.ErrorIs(t, s.Watching(t.Context()), test.err)
			require.ErrorContains(t, s.Watching(t.Context()), "the API server refuses what the watcher needs")
		})
	}
}

// Informers do not say that they may watch again; they only cease to say that they may not, which they do once a second.
func TestAWatcherIsReadyAgainWhenNothingIsRefusedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t)
		s.watching.Store(true)
		for range 5 {
			s.Refusals.Take(errNoRight)
			time.Sleep(20 * time.Second)
			require.Error(t, s.Watching(t.Context()))
		}
		time.Sleep(10 * time.Second)
		require.NoError(t, s.Watching(t.Context()))
	})
}

// What Temporal's return makes due does not wait for a right.
func TestRefusalsDoNotKeepTheWatcherFromLooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, fake.NAB(name))
		s.watching.Store(true)
		s.Refusals.Take(errNoRight)
		s.TemporalRecovered(t.Context())
		synctest.Wait()
		assert.Equal(t, []controllers.Request{request(name)}, s.asked())
	})
}
