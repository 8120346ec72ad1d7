package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/plan"
	"holdfast.dev/holdfast/workflows/plan/due"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

func runs(t require.TestingT, alter func(*plan.Runs)) plan.Runs {
	hourly, err := due.Parse("0 * * * *", "")
	require.NoError(t, err)
	r := plan.Runs{
		Schedule: hourly, Jitter: 5 * time.Minute, Deadline: 10 * time.Minute, Handled: clock(0, 0),
		Made: func(time.Time) bool { return false },
	}
	if alter != nil {
		alter(&r)
	}
	return r
}

func clock(hour, minute int) time.Time { return time.Date(2026, 11, 20, hour, minute, 0, 0, time.UTC) }

// passed is a plan.Passed with the number of those missed.
type passed struct {
	Make, Handled time.Time
	Missed        int
	Skipped       bool
}

func TestWhatBecomesOfDueTimes(t *testing.T) {
	tests := map[string]struct {
		alter func(*plan.Runs)
		now   time.Time
		want  passed
	}{
		"none has passed":               {now: clock(0, 59), want: passed{Handled: clock(0, 0)}},
		"due, but jitter comes first":   {now: clock(1, 4), want: passed{Handled: clock(0, 0)}},
		"due":                           {now: clock(1, 5), want: passed{Make: clock(1, 0), Handled: clock(1, 0)}},
		"late, within the deadline":     {now: clock(1, 15), want: passed{Make: clock(1, 0), Handled: clock(1, 0)}},
		"beyond the deadline":           {now: clock(1, 16), want: passed{Handled: clock(1, 0), Missed: 1}},
		"several: the newest is made":   {now: clock(4, 5), want: passed{Make: clock(4, 0), Handled: clock(4, 0), Missed: 3}},
		"several, all beyond":           {now: clock(4, 30), want: passed{Handled: clock(4, 0), Missed: 4}},
		"the last one is not finished":  {func(r *plan.Runs) { r.Busy = true }, clock(2, 5), passed{Handled: clock(2, 0), Missed: 1, Skipped: true}},
		"paused: nothing is missed":     {func(r *plan.Runs) { r.Paused = true }, clock(4, 30), passed{Handled: clock(4, 0)}},
		"killed after it was made":      {func(r *plan.Runs) { r.Made = func(time.Time) bool { return true } }, clock(9, 59), passed{Make: clock(9, 0), Handled: clock(9, 0)}},
		"made, and the plan paused":     {func(r *plan.Runs) { r.Paused, r.Made = true, func(time.Time) bool { return true } }, clock(1, 5), passed{Make: clock(1, 0), Handled: clock(1, 0)}},
		"made, and not finished itself": {func(r *plan.Runs) { r.Busy, r.Made = true, func(time.Time) bool { return true } }, clock(1, 5), passed{Make: clock(1, 0), Handled: clock(1, 0)}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			got := runs(t, test.alter).Judge(test.now)
			assert.Equal(t, test.want, passed{got.Make, got.Handled, len(got.Missed), got.Skipped})
		})
	}
	assert.Equal(t, clock(1, 5), runs(t, nil).Next(clock(0, 5)), "a run that begins now is not the next one")
	assert.Equal(t, clock(1, 5), runs(t, nil).Next(clock(1, 4)))
}

// Whenever a plan is judged, each due time is made, missed or skipped once.
func TestEachDueTimeCountsOnce(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		made := map[int64]bool{}
		r := runs(t, func(r *plan.Runs) { r.Made = func(at time.Time) bool { return made[at.Unix()] } })
		first, now := r.Handled, r.Handled
		var total int64
		for range rapid.IntRange(1, 20).Draw(t, "judged") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "minutes")) * time.Minute)
			r.Busy = rapid.Bool().Draw(t, "busy")
			passed := r.Judge(now)
			if !passed.Make.IsZero() {
				made[passed.Make.Unix()] = true
				if rapid.Bool().Draw(t, "killed before it is written") {
					continue
				}
			}
			total += int64(len(passed.Missed))
			if passed.Skipped {
				total++
			}
			r.Handled = passed.Handled
		}
		var handled int64
		for at := range made {
			if at <= r.Handled.Unix() {
				handled++
			}
		}
		times, _ := r.Schedule.Between(first, r.Handled, 10_000)
		if int64(len(times)) != total+handled {
			t.Fatalf("%d due times, %d made, %d missed or skipped", len(times), handled, total)
		}
	})
}

func TestObjectives(t *testing.T) {
	objective := func(lastGood time.Time, paused bool) plan.Objective {
		return plan.Objective{RecoveryPoint: 2 * time.Hour, LastGood: lastGood, Created: clock(0, 0), Paused: paused}
	}
	tests := map[string]struct {
		objective plan.Objective
		now       time.Time
		want      plan.Verdict
		changes   time.Time
	}{
		"new":                             {objective(time.Time{}, false), clock(1, 0), plan.Unknown, clock(2, 0)},
		"never succeeded":                 {objective(time.Time{}, false), clock(2, 0), plan.NeverSucceeded, time.Time{}},
		"recent":                          {objective(clock(5, 0), false), clock(6, 59), plan.Met, clock(7, 0)},
		"too old":                         {objective(clock(5, 0), false), clock(7, 0), plan.Stale, time.Time{}},
		"paused, and recent all the same": {objective(clock(5, 0), true), clock(6, 59), plan.Met, clock(7, 0)},
		"paused, and too old":             {objective(clock(5, 0), true), clock(7, 0), plan.Paused, time.Time{}},
		"paused, never succeeded":         {objective(time.Time{}, true), clock(7, 0), plan.Paused, time.Time{}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			verdict, changes := test.objective.Judge(test.now)
			assert.Equal(t, test.want, verdict)
			assert.Equal(t, test.changes, changes)
		})
	}
}
