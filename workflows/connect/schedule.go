package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// Schedule is a Schedule as it is to be.
type Schedule struct {
	// ScheduleOptions are those with which it is made.
	client.ScheduleOptions
	// Absent: none is made; one that exists is kept.
	Absent bool
	// Same reports whether one that exists is as it is to be, and Change changes one that is not.
	Same   func(*client.Schedule) bool
	Change func(*client.Schedule)
}

// Starting returns a Schedule that starts a workflow, unless that still runs. A start that is more than catchUp late is left out.
// timely reports whether a spec has the same times; operators decide whether the Schedule is paused.
func Starting(
	w Workflow, id string, spec client.ScheduleSpec, catchUp time.Duration, timely func(*client.ScheduleSpec) bool,
) Schedule {
	action := &client.ScheduleWorkflowAction{
		ID: w.Options.ID, Workflow: w.Kind.Workflow, Args: []any{w.Input},
		TaskQueue: w.Options.TaskQueue, WorkflowTaskTimeout: w.Options.WorkflowTaskTimeout,
		TypedSearchAttributes: w.Options.TypedSearchAttributes, StaticSummary: w.Options.StaticSummary,
		Priority: w.Options.Priority,
	}
	policy := client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp}
	return Schedule{
		ScheduleOptions: client.ScheduleOptions{
			ID: id, Spec: spec, Action: action, Overlap: policy.Overlap, CatchupWindow: catchUp,
		},
		Same: func(is *client.Schedule) bool {
			started, ok := is.Action.(*client.ScheduleWorkflowAction)
			return ok && started.Workflow == action.Workflow && started.TaskQueue == action.TaskQueue && is.Policy != nil &&
				is.Policy.Overlap == policy.Overlap && is.Policy.CatchupWindow == catchUp && is.Spec != nil && timely(is.Spec)
		},
		Change: func(is *client.Schedule) { is.Spec, is.Action, is.Policy = &spec, action, &policy },
	}
}

// Ensure makes the Schedule, or changes it if it is not the same. Two callers at a time do no harm.
func (s Schedule) Ensure(ctx context.Context, c client.Client) error {
	handle := c.ScheduleClient().GetHandle(ctx, s.ID)
	described, err := handle.Describe(ctx)
	switch {
	case NotFound(err):
		return s.create(ctx, c)
	case err != nil:
		return fmt.Errorf("describe Schedule %s: %w", s.ID, err)
	case s.Same(&described.Schedule):
		return nil
	}
	err = handle.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(input client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := input.Description.Schedule
			s.Change(&schedule)
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update Schedule %s: %w", s.ID, err)
	}
	return nil
}

func (s Schedule) create(ctx context.Context, c client.Client) error {
	if s.Absent {
		return nil
	}
	_, err := c.ScheduleClient().Create(ctx, s.ScheduleOptions)
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) { // another caller was faster
		return fmt.Errorf("create Schedule %s: %w", s.ID, err)
	}
	return nil
}

// DeleteSchedule deletes a Schedule if there is one.
func DeleteSchedule(ctx context.Context, c client.Client, id string) error {
	if err := c.ScheduleClient().GetHandle(ctx, id).Delete(ctx); err != nil && !NotFound(err) {
		return fmt.Errorf("delete Schedule %s: %w", id, err)
	}
	return nil
}

// TriggerSchedule has a Schedule start its workflow now, or, if that runs, once more after it.
func TriggerSchedule(ctx context.Context, c client.Client, id string) error {
	err := c.ScheduleClient().GetHandle(ctx, id).Trigger(ctx,
		client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE})
	if err != nil {
		return fmt.Errorf("trigger Schedule %s: %w", id, err)
	}
	return nil
}

// EachSchedule calls do for each entry of the list of Schedules that match a query. The list may be a second old.
func EachSchedule(ctx context.Context, c client.Client, query string, do func(*client.ScheduleListEntry)) error {
	const page = 1000
	entries, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: page, Query: query})
	for err == nil && entries.HasNext() {
		var entry *client.ScheduleListEntry
		if entry, err = entries.Next(); err == nil {
			do(entry)
		}
	}
	if err != nil {
		return fmt.Errorf("list Schedules: %w", err)
	}
	return nil
}
