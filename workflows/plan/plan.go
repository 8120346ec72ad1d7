package plan

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run. It serves one BackupPlan as long as it exists. It is the only writer of the object's status.
// It wakes by signals, and by a timer when something is due without one: a run for which the Schedule has not signalled it, or
// the end of the objective.
var Kind = kinds.Of(entity.Kind[*contract.PlanInput, contract.PlanStep, contract.PlanView]{
	Kind: contract.KindPlan, Read: contract.RefreshPlan,
	Activities: contract.Names(
		contract.RunPlan, contract.RecordPlanBackups, contract.DeletePlanBackup, contract.ExtendPlanBackup, contract.MakePlanDrill,
		contract.DeletePlanDrill,
	),
	Settled: Settled, Next: next, Awaited: awaited, Phases: phases, Begin: begin,
	Waits: contract.PlanView{Found: true, Ready: true, WakeIn: time.Hour},
})

type (
	run      = entity.Run[*contract.PlanInput, contract.PlanStep, contract.PlanView]
	activity = contract.Activity[contract.PlanStep, contract.PlanView]
)

// planRun is what a run of this kind has besides.
type planRun struct {
	*run
	// timer fires at wakes.
	timer     workflow.Future
	stopTimer workflow.CancelFunc
	wakes     time.Time
}

func begin(_ workflow.Context, r *run) error {
	own := &planRun{run: r}
	r.First, r.Do, r.Drain, r.Waiters = own.first, own.do, own.drain, []entity.Waiter{own.awaitDue}
	return nil
}

// first is the step that reads the objects: one that also does what is probably due spares a second reading.
func (r *planRun) first(ctx workflow.Context) activity {
	if r.In.RunNow && workflow.Now(ctx).Unix()-r.In.LastByHand < int64(oneByHand/time.Second) {
		r.In.RunNow = false
	}
	switch v := r.View; {
	case v.Ready && v.Paused == "" && v.NextRun != 0 && v.NextRun <= workflow.Now(ctx).Unix():
		return contract.RunPlan
	case len(r.In.Made) > 0:
		return contract.RecordPlanBackups
	}
	return contract.RefreshPlan
}

// phases are the search attributes of a plan.
func phases(v contract.PlanView) (phase, veleroPhase string) {
	switch {
	case !v.Found:
		return "", ""
	case !v.Ready:
		return "NotReady", ""
	case v.Paused != "":
		return "Paused", ""
	}
	return "Ready", ""
}

func (r *planRun) do(ctx workflow.Context, step activity) (contract.PlanView, error) {
	in := contract.PlanStep{Cluster: r.In.Cluster, Ref: r.In.Ref, Made: slices.Clone(r.In.Made), Schedule: r.In.Schedule}
	// What is started by hand has its time in the history before it is made, or a kill would make it twice.
	perform := call.LocalFirst[contract.PlanStep, contract.PlanView]
	switch step {
	case contract.RunPlan:
		if r.View.Due == 0 && r.View.RunNow {
			// A run is named by its second: two that are requested within one are two.
			in.Due = max(workflow.Now(ctx).Unix(), r.In.LastByHand+1)
			perform = call.Recorded[contract.PlanStep, contract.PlanView]
		}
	case contract.DeletePlanBackup:
		in.Backup = r.View.Delete
	case contract.ExtendPlanBackup:
		in.Backup = r.View.Extend
	case contract.DeletePlanDrill:
		in.Drill = r.View.DeleteDrill
	}
	view, err := perform(ctx, r.Options.Limits, step, in)
	if err == nil {
		r.learn(&view, in)
	}
	return view, err
}

// learn adds to a view what only the workflow knows, and to the workflow what the view says of its backups.
func (r *planRun) learn(view *contract.PlanView, in contract.PlanStep) {
	if view.MadeNow != nil && !slices.Contains(r.In.Made, *view.MadeNow) {
		r.In.Made = append(r.In.Made, *view.MadeNow)
	}
	r.In.Made = slices.DeleteFunc(r.In.Made, func(b contract.PlanBackup) bool { return slices.Contains(view.Recorded, b.UID) })
	if excess := len(r.In.Made) - contract.MaxPlanMade; excess > 0 {
		r.In.Made = slices.Delete(r.In.Made, 0, excess)
	}
	r.In.Schedule = view.Schedule
	if in.Due != 0 {
		r.In.LastByHand = in.Due
	}
	if in.Due != 0 || !view.Ready {
		r.In.RunNow = false
	}
	view.RunNow = view.RunNow || r.In.RunNow
}

func (r *planRun) drain() int {
	return entity.DrainNoting(r.Changed, func(changed contract.PlanChanged) {
		r.In.RunNow = r.In.RunNow || changed.RunNow
		if changed.Schedule {
			r.In.Schedule = nil
		}
	})
}

// oneByHand is the time in which starts by hand are the same one: a backfill starts one for each time of the schedule.
const oneByHand = time.Minute

// longest is how long a plan waits at most without reading its objects.
const longest = time.Hour

// awaitDue is an entity.Waiter. It ends a wait when something is due without a signal.
func (r *planRun) awaitDue(ctx workflow.Context, selector workflow.Selector) {
	r.setTimer(ctx, workflow.Now(ctx).Add(min(longest, max(time.Second, r.View.WakeIn))))
	selector.AddFuture(r.timer, func(workflow.Future) {
		r.timer = nil
		if known := r.In.Schedule; known != nil {
			doubted := *known
			doubted.Doubted = true
			r.In.Schedule = &doubted
		}
	})
}

// setTimer has the run wake soon after a time. A timer that fires a little before or after is kept: signals must not fill the
// history with timers.
func (r *planRun) setTimer(ctx workflow.Context, at time.Time) {
	const near = 5 * time.Second
	if r.timer != nil && r.wakes.Sub(at).Abs() <= near {
		return
	}
	if r.timer != nil {
		r.stopTimer()
	}
	timers, stop := workflow.WithCancel(ctx)
	r.timer, r.stopTimer, r.wakes = workflow.NewTimer(timers, at.Sub(workflow.Now(ctx))), stop, at
}
