package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// notePaused is on a Schedule that spec.paused has paused. A person who pauses it writes another note.
	notePaused = "paused by spec.paused of the BackupPlan"
	// noteRefused is on the Schedule of a plan that is not ready.
	noteRefused = "paused because the BackupPlan is not ready: its condition Ready says why"
	noteActive  = "kept by Holdfast from the BackupPlan"
	// catchUp is how late Temporal may start a run. A later one the plan makes up by itself, within its startingDeadline.
	catchUp = time.Minute
)

// Temporal implements Schedules with a Temporal client.
type Temporal struct{ Client client.Client }

var _ Schedules = (*Temporal)(nil)

// Keep implements Schedules.
func (t *Temporal) Keep(ctx context.Context, cluster string, ref contract.ObjectRef, wanted Wanted) (Kept, error) {
	handle := t.Client.ScheduleClient().GetHandle(ctx, contract.WorkflowID(cluster, contract.KindPlan, ref))
	described, err := handle.Describe(ctx)
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		if wanted.Refused {
			return Kept{}, nil
		}
		return Kept{Last: wanted.last()}, t.create(ctx, cluster, ref, wanted)
	}
	if err != nil {
		return Kept{}, fmt.Errorf("describe Schedule %s: %w", handle.GetID(), err)
	}
	kept := Kept{Last: lastInstant(described.Schedule.Spec), PausedByOperator: pausedByOperator(&described.Schedule)}
	if asWanted(&described.Schedule, cluster, wanted) {
		return kept, nil
	}
	err = handle.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(input client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := input.Description.Schedule
			kept.PausedByOperator = pausedByOperator(&schedule)
			if !wanted.Refused {
				schedule.Spec, schedule.Action, schedule.Policy = spec(wanted), action(cluster, ref, wanted), policies()
				kept.Last = wanted.last()
			}
			schedule.State = state(wanted, kept.PausedByOperator, schedule.State)
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
	if err != nil {
		return Kept{}, fmt.Errorf("update Schedule %s: %w", handle.GetID(), err)
	}
	return kept, nil
}

// lastInstant is the last of the times that a Schedule was given.
func lastInstant(spec *client.ScheduleSpec) time.Time {
	var last int64
	if spec != nil {
		for _, calendar := range spec.Calendars {
			if at, single := instant(calendar); single {
				last = max(last, at)
			}
		}
	}
	return time.Unix(last, 0)
}

func (t *Temporal) create(ctx context.Context, cluster string, ref contract.ObjectRef, wanted Wanted) error {
	id := contract.WorkflowID(cluster, contract.KindPlan, ref)
	first := state(wanted, false, nil)
	_, err := t.Client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: id, Spec: *spec(wanted), Action: action(cluster, ref, wanted), Overlap: policies().Overlap, CatchupWindow: catchUp,
		Paused: first.Paused, Note: first.Note,
		Memo:                  map[string]any{"plan": ref.String()},
		TypedSearchAttributes: contract.KindPlan.Attributes(cluster, ref),
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("create Schedule %s: %w", id, err)
	}
	return nil
}

// Drop implements Schedules.
func (t *Temporal) Drop(ctx context.Context, cluster string, ref contract.ObjectRef) error {
	handle := t.Client.ScheduleClient().GetHandle(ctx, contract.WorkflowID(cluster, contract.KindPlan, ref))
	var missing *serviceerror.NotFound
	if err := handle.Delete(ctx); err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("delete Schedule %s: %w", handle.GetID(), err)
	}
	return nil
}

// Signal implements Schedules.
func (t *Temporal) Signal(ctx context.Context, in contract.PlanSignal) error {
	return activities.SignalObject(ctx, t.Client, contract.KindPlan, in.Cluster, in.Ref, contract.SignalChanged,
		contract.PlanChanged{Changed: contract.Changed{Reason: "the Schedule has started a run"}, RunNow: in.ByHand})
}

// pausedByOperator: a person has paused it, whose pause holds.
func pausedByOperator(schedule *client.Schedule) bool {
	return schedule.State != nil && schedule.State.Paused && schedule.State.Note != notePaused && schedule.State.Note != noteRefused
}

// state is that of the Schedule: an operator's pause, with the note, is left as it is.
func state(wanted Wanted, operator bool, before *client.ScheduleState) *client.ScheduleState {
	switch {
	case operator:
		return before
	case wanted.Refused:
		return &client.ScheduleState{Paused: true, Note: noteRefused}
	case wanted.Paused:
		return &client.ScheduleState{Paused: true, Note: notePaused}
	}
	return &client.ScheduleState{Note: noteActive}
}

// asWanted compares what may have been changed by hand, by the tenant or by another release.
func asWanted(schedule *client.Schedule, cluster string, wanted Wanted) bool {
	want := state(wanted, pausedByOperator(schedule), schedule.State)
	if schedule.State == nil || schedule.State.Paused != want.Paused || schedule.State.Note != want.Note {
		return false
	}
	if wanted.Refused {
		return true
	}
	started, ok := schedule.Action.(*client.ScheduleWorkflowAction)
	kind := contract.KindPlanStart
	state := schedule.State
	return ok && started.Workflow == kind.Workflow && started.TaskQueue == kind.TaskQueue(cluster) && !state.LimitedActions &&
		schedule.Policy != nil && schedule.Policy.Overlap == policies().Overlap && schedule.Policy.CatchupWindow == catchUp &&
		timely(schedule.Spec, wanted)
}

// timely: the Schedule's times to come are the plan's, and enough are left.
func timely(spec *client.ScheduleSpec, wanted Wanted) bool {
	if spec == nil || len(spec.Intervals) > 0 || len(spec.CronExpressions) > 0 || len(spec.Skip) > 0 || spec.Jitter != 0 ||
		!spec.StartAt.IsZero() || !spec.EndAt.IsZero() {
		return false
	}
	var next []int64
	for _, calendar := range spec.Calendars {
		at, single := instant(calendar)
		if !single {
			return false
		}
		if len(wanted.Next) > 0 && at >= wanted.Next[0].Unix() {
			next = append(next, at)
		}
	}
	slices.Sort(next)
	if len(next) < min(enoughTimes, len(wanted.Next)) {
		return false
	}
	for i, at := range next {
		if i < len(wanted.Next) && at != wanted.Next[i].Unix() {
			return false
		}
	}
	return true
}

func spec(wanted Wanted) *client.ScheduleSpec {
	spec := &client.ScheduleSpec{}
	for _, at := range slices.Concat(wanted.Past, wanted.Next) {
		spec.Calendars = append(spec.Calendars, calendar(at.UTC()))
	}
	return spec
}

func calendar(at time.Time) client.ScheduleCalendarSpec {
	one := func(value int) []client.ScheduleRange { return []client.ScheduleRange{{Start: value}} }
	return client.ScheduleCalendarSpec{
		Year: one(at.Year()), Month: one(int(at.Month())), DayOfMonth: one(at.Day()),
		Hour: one(at.Hour()), Minute: one(at.Minute()), Second: one(at.Second()),
	}
}

// instant is the time of a calendar that calendar has made.
func instant(of client.ScheduleCalendarSpec) (unix int64, single bool) {
	var values [6]int
	for i, ranges := range [][]client.ScheduleRange{of.Year, of.Month, of.DayOfMonth, of.Hour, of.Minute, of.Second} {
		if len(ranges) != 1 || ranges[0].End > ranges[0].Start {
			return 0, false
		}
		values[i] = ranges[0].Start
	}
	return time.Date(values[0], time.Month(values[1]), values[2], values[3], values[4], values[5], 0, time.UTC).Unix(), true
}

func policies() *client.SchedulePolicies {
	return &client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp}
}

func action(cluster string, ref contract.ObjectRef, wanted Wanted) *client.ScheduleWorkflowAction {
	kind := contract.KindPlanStart
	in := contract.PlanStartInput{Cluster: cluster, Ref: ref}
	for _, at := range slices.Concat(wanted.Past, wanted.Next) {
		in.Instants = append(in.Instants, at.Unix())
	}
	return &client.ScheduleWorkflowAction{
		ID: contract.WorkflowID(cluster, kind, ref), Workflow: kind.Workflow, Args: []any{in},
		TaskQueue: kind.TaskQueue(cluster), WorkflowTaskTimeout: contract.WorkflowTaskTimeout,
		TypedSearchAttributes: kind.Attributes(cluster, ref), StaticSummary: kind.SummaryOf(ref.String()),
		Priority: ref.Fairness(),
	}
}
