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

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindPlan,
	Activities: contract.Names(contract.RefreshPlan, contract.RunPlan, contract.RecordPlanBackups, contract.DeletePlanBackup,
		contract.ExtendPlanBackup),
	Read: contract.RefreshPlan.Name, Decisions: decisions,
	Run: kinds.Serving(Workflow),
}

// Workflow serves one BackupPlan as long as it exists. It is the only writer of the object's status. It wakes by signals, and by
// a timer when something is due without one: a run for which the Schedule has not signalled it, or the end of the objective.
func Workflow(ctx workflow.Context, in contract.PlanInput, options call.Options) error {
	run := &planRun{in: in, options: options, signals: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.PlanState, error) {
		return contract.PlanState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// planRun is the state of one run. Nothing in it outlives the run but what PlanInput carries over.
type planRun struct {
	in      contract.PlanInput
	options call.Options
	signals workflow.ReceiveChannel
	view    contract.PlanView
	// timer fires at wakes.
	timer     workflow.Future
	stopTimer workflow.CancelFunc
	wakes     time.Time
}

// Pass implements entity.Object.
func (r *planRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	if r.in.RunNow && workflow.Now(ctx).Unix()-r.in.LastByHand < int64(oneByHand/time.Second) {
		r.in.RunNow = false
	}
	step, err := entity.Course[contract.PlanView]{Read: r.first(ctx), Next: decisions.Next, Do: r.take}.Take(ctx)
	if err != nil {
		return entity.Waiting, err
	}
	return entity.OutcomeOf(step), entity.Show(ctx, &r.in.ObjectInput, phase(r.view), "")
}

// first is the step that reads the objects: one that also does what is probably due spares a second reading.
func (r *planRun) first(ctx workflow.Context) entity.Step {
	switch v := r.view; {
	case v.Ready && v.Paused == "" && v.NextRun != 0 && v.NextRun <= workflow.Now(ctx).Unix():
		return stepRun
	case len(r.in.Made) > 0:
		return stepRecord
	}
	return stepRefresh
}

// phase is the search attribute of a plan.
func phase(v contract.PlanView) string {
	switch {
	case !v.Found:
		return ""
	case !v.Ready:
		return "NotReady"
	case v.Paused != "":
		return "Paused"
	}
	return "Ready"
}

func (r *planRun) take(ctx workflow.Context, step entity.Step) (contract.PlanView, error) {
	in := contract.PlanStep{Cluster: r.in.Cluster, Ref: r.in.Ref, Made: slices.Clone(r.in.Made), Schedule: r.in.Schedule}
	// What is started by hand has its time in the history before it is made, or a kill would make it twice.
	perform := call.LocalFirst[contract.PlanStep, contract.PlanView]
	switch step {
	case stepRun:
		if r.view.Due == 0 && r.view.RunNow {
			// A run is named by its second: two that are requested within one are two.
			in.Due = max(workflow.Now(ctx).Unix(), r.in.LastByHand+1)
			perform = call.Recorded[contract.PlanStep, contract.PlanView]
		}
	case stepDelete:
		in.Backup = r.view.Delete
	case stepExtend:
		in.Backup = r.view.Extend
	}
	view, err := perform(ctx, r.options.Limits, steps.Activity(step), in)
	if err != nil {
		return view, err
	}
	r.learn(&view, in)
	r.view = view
	return view, nil
}

// learn adds to a view what only the workflow knows, and to the workflow what the view says of its backups.
func (r *planRun) learn(view *contract.PlanView, in contract.PlanStep) {
	if view.MadeNow != nil && !slices.Contains(r.in.Made, *view.MadeNow) {
		r.in.Made = append(r.in.Made, *view.MadeNow)
	}
	r.in.Made = slices.DeleteFunc(r.in.Made, func(b contract.PlanBackup) bool { return slices.Contains(view.Recorded, b.UID) })
	if excess := len(r.in.Made) - contract.MaxPlanMade; excess > 0 {
		r.in.Made = slices.Delete(r.in.Made, 0, excess)
	}
	r.in.Schedule = view.Schedule
	if in.Due != 0 {
		r.in.LastByHand = in.Due
	}
	if in.Due != 0 || !view.Ready {
		r.in.RunNow = false
	}
	view.RunNow = view.RunNow || r.in.RunNow
}

// Drain implements entity.Object.
func (r *planRun) Drain() int {
	waiting := r.signals.Len()
	for received := 0; ; received++ {
		var changed contract.Changed
		if !r.signals.ReceiveAsync(&changed) {
			return max(waiting, received)
		}
		r.in.RunNow = r.in.RunNow || changed.RunNow
		if changed.Schedule {
			r.in.Schedule = nil
		}
	}
}

// Carry implements entity.Object.
func (r *planRun) Carry() any { return r.in }

// oneByHand is the time in which starts by hand are the same one: a backfill starts one for each time of the schedule.
const oneByHand = time.Minute

// longest is how long a plan waits at most without reading its objects.
const longest = time.Hour

// Wait implements entity.Object. It waits until a signal comes or something is due without one.
func (r *planRun) Wait(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, awaited(r.view))
	r.setTimer(ctx, workflow.Now(ctx).Add(min(longest, max(time.Second, r.view.WakeIn))))
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.signals, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddFuture(r.timer, func(workflow.Future) {
		r.timer = nil
		if known := r.in.Schedule; known != nil {
			doubted := *known
			doubted.Doubted = true
			r.in.Schedule = &doubted
		}
	})
	selector.Select(ctx)
	return ctx.Err()
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
