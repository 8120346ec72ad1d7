package schedules

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

// keptSchedules notes what it was asked to keep.
type keptSchedules struct {
	periods   map[contract.Kind][]time.Duration
	triggered map[contract.Kind]int
	err       error
}

// Keep implements Schedules.
func (s *keptSchedules) Keep(_ context.Context, kind contract.Kind, period time.Duration) error {
	if s.err == nil {
		s.periods[kind] = append(s.periods[kind], period)
	}
	return s.err
}

// Trigger implements Schedules.
func (s *keptSchedules) Trigger(_ context.Context, kind contract.Kind) error {
	s.triggered[kind]++
	return nil
}

func TestSchedulesFollowThePolicy(t *testing.T) {
	schedules := &keptSchedules{periods: map[contract.Kind][]time.Duration{}, triggered: map[contract.Kind]int{}}
	keeper := Keeper{Schedules: schedules, Log: zap.NewNop(), kept: map[contract.Kind]kept{}}
	period := func(d time.Duration) policy.Policy {
		return policy.Policy{BackupSyncPeriod: &metav1.Duration{Duration: d}}
	}

	schedules.err = errors.New("connection refused")
	keeper.keep(t.Context(), policy.Policy{})
	schedules.err = nil
	keeper.keep(t.Context(), policy.Policy{}) // tried again at once
	keeper.keep(t.Context(), policy.Policy{}) // nothing is new
	keeper.keep(t.Context(), period(0))
	keeper.keep(t.Context(), period(90*time.Second+time.Millisecond))
	assert.Equal(t, map[contract.Kind][]time.Duration{
		contract.KindCollection:      {24 * time.Hour},
		contract.KindSynchronization: {2 * time.Minute, 0, 90 * time.Second},
		contract.KindDefaultPlans:    {DefaultPlansPeriod},
	}, schedules.periods)
	assert.Equal(t, map[contract.Kind]int{
		contract.KindCollection: 1, contract.KindSynchronization: 1, contract.KindDefaultPlans: 1,
	}, schedules.triggered, "once at the start, not at every change")

	last := keeper.kept[contract.KindCollection]
	last.at = last.at.Add(-again)
	keeper.kept[contract.KindCollection] = last
	keeper.keep(t.Context(), period(90*time.Second))
	assert.Len(t, schedules.periods[contract.KindCollection], 2, "somebody may have deleted it")
}

func TestACatchUpIsShorterThanThePeriod(t *testing.T) {
	assert.Equal(t, 10*time.Minute, catchUp(24*time.Hour))
	assert.Equal(t, time.Minute, catchUp(2*time.Minute))
	assert.Equal(t, 10*time.Second, catchUp(time.Second), "Temporal takes no less")
}

// Namespaces change all the time; default plans are compared once for all changes of ten seconds.
func TestDefaultPlansAreComparedAfterAChange(t *testing.T) {
	schedules := &keptSchedules{periods: map[contract.Kind][]time.Duration{}, triggered: map[contract.Kind]int{}}
	keeper := Keeper{Schedules: schedules, Log: zap.NewNop(), kept: map[contract.Kind]kept{}}
	keeper.DefaultPlansChanged()
	keeper.startDefaultPlans(t.Context())
	assert.Empty(t, schedules.triggered, "its Schedule is not there yet")
	keeper.keep(t.Context(), policy.Policy{})
	keeper.startDefaultPlans(t.Context())
	assert.Equal(t, 2, schedules.triggered[contract.KindDefaultPlans], "at the start, and for the change")
	keeper.startDefaultPlans(t.Context())
	keeper.DefaultPlansChanged()
	keeper.startDefaultPlans(t.Context())
	assert.Equal(t, 2, schedules.triggered[contract.KindDefaultPlans], "too soon")
	last := keeper.kept[contract.KindDefaultPlans]
	last.started = last.started.Add(-apart)
	keeper.kept[contract.KindDefaultPlans] = last
	keeper.startDefaultPlans(t.Context())
	keeper.startDefaultPlans(t.Context())
	assert.Equal(t, 3, schedules.triggered[contract.KindDefaultPlans], "later, and once")
}
