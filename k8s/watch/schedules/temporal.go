package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

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
	handle := s.Client.ScheduleClient().GetHandle(ctx, contract.ScheduleID(s.ClusterID, kind))
	var missing *serviceerror.NotFound
	if period <= 0 {
		if err := handle.Delete(ctx); err != nil && !errors.As(err, &missing) {
			return fmt.Errorf("delete Schedule %s: %w", handle.GetID(), err)
		}
		return nil
	}
	description, err := handle.Describe(ctx)
	switch {
	case errors.As(err, &missing):
		return s.create(ctx, kind, period)
	case err != nil:
		return fmt.Errorf("describe Schedule %s: %w", handle.GetID(), err)
	case s.asWished(&description.Schedule, kind, period):
		return nil
	}
	err = handle.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(input client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := input.Description.Schedule // operators decide whether it is paused
			schedule.Spec, schedule.Action = spec(period), s.action(kind)
			schedule.Policy = &client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp(period)}
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update Schedule %s: %w", handle.GetID(), err)
	}
	return nil
}

func (s *Temporal) create(ctx context.Context, kind contract.Kind, period time.Duration) error {
	wished := spec(period)
	_, err := s.Client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: contract.ScheduleID(s.ClusterID, kind), Spec: *wished, Action: s.action(kind),
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp(period),
		TriggerImmediately:    true,
		TypedSearchAttributes: kind.Attributes(s.ClusterID, contract.ObjectRef{}),
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) { // another watcher was faster
		return fmt.Errorf("create Schedule %s: %w", contract.ScheduleID(s.ClusterID, kind), err)
	}
	return nil
}

// asWished compares the settings that may have been changed by hand, by the policy or by another release.
func (s *Temporal) asWished(schedule *client.Schedule, kind contract.Kind, period time.Duration) bool {
	action, ok := schedule.Action.(*client.ScheduleWorkflowAction)
	return ok && action.Workflow == kind.Workflow && action.TaskQueue == kind.TaskQueue(s.ClusterID) &&
		schedule.Spec != nil && len(schedule.Spec.Intervals) == 1 && schedule.Spec.Intervals[0].Every == period &&
		schedule.Policy != nil && schedule.Policy.Overlap == enumspb.SCHEDULE_OVERLAP_POLICY_SKIP &&
		schedule.Policy.CatchupWindow == catchUp(period)
}

// Trigger implements Schedules.
func (s *Temporal) Trigger(ctx context.Context, kind contract.Kind) error {
	handle := s.Client.ScheduleClient().GetHandle(ctx, contract.ScheduleID(s.ClusterID, kind))
	err := handle.Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE})
	if err != nil {
		return fmt.Errorf("trigger Schedule %s: %w", handle.GetID(), err)
	}
	return nil
}

func (s *Temporal) action(kind contract.Kind) *client.ScheduleWorkflowAction {
	return &client.ScheduleWorkflowAction{
		ID: contract.ScheduleID(s.ClusterID, kind), Workflow: kind.Workflow, Args: []any{contract.ScheduledInput{Cluster: s.ClusterID}},
		TaskQueue: kind.TaskQueue(s.ClusterID), WorkflowTaskTimeout: contract.WorkflowTaskTimeout,
		TypedSearchAttributes: kind.Attributes(s.ClusterID, contract.ObjectRef{}), StaticSummary: kind.Summary,
	}
}

func spec(period time.Duration) *client.ScheduleSpec {
	return &client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: period}}}
}

// catchUp is how late a start may be: less than the period, and at least Temporal's minimum of ten seconds.
func catchUp(period time.Duration) time.Duration {
	return max(10*time.Second, min(period/2, catchUpMost).Truncate(time.Second))
}
