package plan

import (
	"time"

	"holdfast.dev/holdfast/workflows/plan/due"
)

// Runs is what a plan's due times are judged by.
type Runs struct {
	Schedule due.Schedule
	// Jitter is how much later than due a run begins, and Deadline how much later than that it may.
	Jitter, Deadline time.Duration
	// Handled is the newest due time that was handled before, or when the plan was made.
	Handled time.Time
	// Since: what was due before is neither made nor missed.
	Since time.Time
	// Paused: somebody has paused the plan.
	Paused bool
	// Busy: the plan's last backup is not finished, and the plan shall not make another one then.
	Busy bool
	// Made reports whether the run of a due time was made: the process may have been killed before it could write that.
	Made func(due time.Time) bool
}

// Passed is what becomes of the due times that have passed.
type Passed struct {
	// Make is the due time of the run that is to be made now; zero if there is none.
	Make time.Time
	// Handled is the newest due time, once Make is made.
	Handled time.Time
	// Missed are due times of which no run was made in time, oldest first.
	Missed []time.Time
	// Skipped: there is no run of Handled, because the last one is not finished.
	Skipped bool
}

// maxMissed bounds how many missed due times are counted at once.
const maxMissed = 100_000

// Judge decides on the due times that have passed. Of several only the newest is made.
func (r Runs) Judge(now time.Time) Passed {
	from := r.Handled
	if r.Since.After(from) {
		from = r.Since
	}
	times, _ := r.Schedule.Between(from, now.Add(-r.Jitter), maxMissed)
	if len(times) == 0 {
		return Passed{Handled: r.Handled}
	}
	newest := times[len(times)-1]
	passed := Passed{Handled: newest}
	if !r.Paused {
		for _, at := range times[:len(times)-1] {
			if !r.Made(at) {
				passed.Missed = append(passed.Missed, at)
			}
		}
	}
	switch {
	case r.Made(newest):
		passed.Make = newest
	case r.Paused:
	case now.Sub(newest.Add(r.Jitter)) > r.Deadline:
		passed.Missed = append(passed.Missed, newest)
	case r.Busy:
		passed.Skipped = true
	default:
		passed.Make = newest
	}
	return passed
}

// Next returns when the next run begins.
func (r Runs) Next(now time.Time) time.Time {
	return r.Schedule.Next(now.Add(-r.Jitter)).Add(r.Jitter)
}
