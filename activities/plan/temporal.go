package plan

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/connect"
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
func (t *Temporal) Keep(ctx context.Context, cluster string, ref contract.ObjectRef, wanted Wanted) (kept Kept, err error) {
	schedule := temporalSchedule(cluster, ref, wanted)
	scheduled, change := schedule.Same, schedule.Change
	kept.Last = wanted.last()
	schedule.Same = func(is *client.Schedule) bool {
		kept = Kept{Last: lastInstant(is.Spec), PausedByOperator: pausedByOperator(is)}
		want := state(wanted, kept.PausedByOperator, is.State)
		return is.State != nil && is.State.Paused == want.Paused && is.State.Note == want.Note &&
			(wanted.Refused || (!is.State.LimitedActions && scheduled(is)))
	}
	schedule.Change = func(is *client.Schedule) {
		kept.PausedByOperator = pausedByOperator(is)
		if !wanted.Refused {
			change(is)
			kept.Last = wanted.last()
		}
		is.State = state(wanted, kept.PausedByOperator, is.State)
	}
	err = schedule.Ensure(ctx, t.Client)
	return kept, err
}

// temporalSchedule is the Schedule of a plan as it is to be.
func temporalSchedule(cluster string, ref contract.ObjectRef, wanted Wanted) connect.Schedule {
	in := contract.PlanStartInput{Cluster: cluster, Ref: ref}
	spec := client.ScheduleSpec{}
	for _, at := range slices.Concat(wanted.Past, wanted.Next) {
		in.Instants = append(in.Instants, at.Unix())
		spec.Calendars = append(spec.Calendars, calendar(at.UTC()))
	}
	schedule := connect.Starting(connect.PlanStart(in), contract.WorkflowID(cluster, contract.KindPlan, ref), spec, catchUp,
		func(is *client.ScheduleSpec) bool { return timely(is, wanted) })
	first := state(wanted, false, nil)
	schedule.Absent, schedule.Paused, schedule.Note = wanted.Refused, first.Paused, first.Note
	schedule.Memo = map[string]any{"plan": ref.String()}
	schedule.TypedSearchAttributes = contract.KindPlan.Attributes(cluster, ref)
	return schedule
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

// Drop implements Schedules.
func (t *Temporal) Drop(ctx context.Context, cluster string, ref contract.ObjectRef) error {
	return connect.DeleteSchedule(ctx, t.Client, contract.WorkflowID(cluster, contract.KindPlan, ref))
}

// Signal implements Schedules.
func (t *Temporal) Signal(ctx context.Context, in contract.PlanSignal) error {
	return connect.ForObject(contract.KindPlan, in.Cluster, in.Ref).SignalWithStart(ctx, t.Client, contract.SignalChanged,
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

// timely: the Schedule's times to come are the plan's, and enough are left.
func timely(spec *client.ScheduleSpec, wanted Wanted) bool {
	if len(spec.Intervals) > 0 || len(spec.CronExpressions) > 0 || len(spec.Skip) > 0 || spec.Jitter != 0 ||
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
