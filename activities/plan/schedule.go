package plan

import (
	"context"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// Schedules are the Schedules of plans in Temporal, and the workflows that these start.
type Schedules interface {
	// Keep has the Schedule of a plan be as wanted, and returns when its last time is, and whether an operator has paused it.
	Keep(ctx context.Context, cluster string, ref contract.ObjectRef, wanted Wanted) (Kept, error)
	// List returns what a list shows of the Schedule of a plan, which costs no workflow task. It may be a second old.
	List(ctx context.Context, cluster string, ref contract.ObjectRef) (listed Listed, found bool, err error)
	// Drop deletes the Schedule of a plan.
	Drop(ctx context.Context, cluster string, ref contract.ObjectRef) error
	// Signal signals the workflow of a plan, and starts it if it does not run.
	Signal(ctx context.Context, in contract.PlanSignal) error
}

// Kept is what is known of a Schedule that is as wanted.
type Kept struct {
	Last             time.Time
	PausedByOperator bool
}

// Wanted is what the Schedule of a plan is to be.
type Wanted struct {
	// Next are when its next runs begin. Past are when the last ones were to: a backfill needs a time to match.
	Next, Past []time.Time
	// Paused: spec.paused.
	Paused bool
	// Refused: the plan makes no runs. A Schedule that exists is paused, and none is made.
	Refused bool
}

// Numbers of times that a Schedule is given.
const (
	nextTimes = 32
	pastTimes = 16
	// enoughTimes is how many times must be left, or the Schedule is given new ones.
	enoughTimes = 8
)

// wanted computes the times of a plan's Schedule.
func wanted(o *Objects, j Judgement, now time.Time) Wanted {
	if j.Refused != "" {
		return Wanted{Paused: o.Plan.Spec.Paused, Refused: true}
	}
	shifted := now.Add(-j.Runs.Jitter)
	w := Wanted{Paused: o.Plan.Spec.Paused}
	w.Next = starts(j.Runs.Schedule.NextN(shifted, nextTimes), j.Runs.Jitter)
	past, _ := j.Runs.Schedule.Between(shifted.Add(-pastTimes*j.Gap), shifted, pastTimes)
	w.Past = starts(past, j.Runs.Jitter)
	return w
}

// last is the last of the times that the Schedule is given; zero if there are none.
func (w Wanted) last() time.Time {
	if len(w.Next) == 0 {
		return time.Time{}
	}
	return w.Next[len(w.Next)-1]
}

// known reports whether a Schedule is as wanted, as far as the plan's workflow knows: others' changes are signalled to it.
func (w Wanted) known(as *contract.PlanSchedule, generation int64) bool {
	if as == nil || as.Generation != generation || as.Refused != w.Refused {
		return false
	}
	enough := min(enoughTimes, len(w.Next))
	return enough == 0 || as.Last >= w.Next[enough-1].Unix()
}

// The years that Temporal's calendars know.
const firstYear, lastYear = 2000, 2099

func starts(due []time.Time, jitter time.Duration) []time.Time {
	var starts []time.Time
	for _, at := range due {
		if at = at.Add(jitter); at.Year() >= firstYear && at.Year() <= lastYear {
			starts = append(starts, at)
		}
	}
	return starts
}
