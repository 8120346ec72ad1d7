package schedules

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// A start that was missed by more than this is skipped: the next one is near, or TemporalRecovered triggers one.
const catchUpMost = 10 * time.Minute

// Schedules keeps the Schedules of periodic work.
type Schedules interface {
	// Keep has the Schedule start its workflow every period, or removes it if that is zero. Two callers at a time do no harm.
	Keep(ctx context.Context, kind contract.Kind, period time.Duration) error
	// Trigger has the Schedule start its workflow now, or, if it runs, once more after it.
	Trigger(ctx context.Context, kind contract.Kind) error
}

// Temporal implements Schedules with a Temporal client.
type Temporal struct {
	Client    client.Client
	ClusterID string
}

var _ Schedules = (*Temporal)(nil)

// Keep implements Schedules.
func (s *Temporal) Keep(ctx context.Context, kind contract.Kind, period time.Duration) error {
	id := contract.ScheduleID(s.ClusterID, kind)
	if period <= 0 {
		return connect.DeleteSchedule(ctx, s.Client, id)
	}
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: period}}}
	schedule := connect.Starting(connect.Periodic(kind, s.ClusterID), id, spec, catchUp(period), func(is *client.ScheduleSpec) bool {
		return len(is.Intervals) == 1 && is.Intervals[0].Every == period
	})
	schedule.TriggerImmediately = true
	schedule.TypedSearchAttributes = kind.Attributes(s.ClusterID, contract.ObjectRef{})
	return schedule.Ensure(ctx, s.Client)
}

// Trigger implements Schedules.
func (s *Temporal) Trigger(ctx context.Context, kind contract.Kind) error {
	return connect.TriggerSchedule(ctx, s.Client, contract.ScheduleID(s.ClusterID, kind))
}

// catchUp is how late a start may be: less than the period, and at least Temporal's minimum of ten seconds.
func catchUp(period time.Duration) time.Duration {
	return max(10*time.Second, min(period/2, catchUpMost).Truncate(time.Second))
}
