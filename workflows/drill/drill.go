package drill

import (
	"hash/fnv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/turns"
)

const (
	// maxWait is how long a drill waits at most without reading its objects, and placePoll while no place is free, longer each
	// time. maxQueued is how long it waits at most while older drills of the namespace come first.
	maxWait      = time.Minute
	placePoll    = 15 * time.Second
	maxPlacePoll = 5 * time.Minute
	maxDoublings = 5
	maxQueued    = 15 * time.Minute
	// checkTimeout limits one attempt of a check, so that an attempt can say what went wrong. A check is given up that long after
	// spec.timeout.
	checkTimeout = 6 * time.Minute
	// checkHeartbeat is how long it takes until a check is retried after its worker was killed.
	checkHeartbeat = 10 * time.Second
	// namespaceTimeout limits one attempt of what is done with a namespace.
	namespaceTimeout = 10 * time.Second
	// namespacePatience is how long the workflow waits for that worker before it reads the drill again.
	namespacePatience = time.Minute
)

// Kind is how the workflow is run. It serves one RestoreDrill from its creation until nothing is left of what was made for it,
// also if it is deleted meanwhile. It is the only writer of the object's status.
var Kind = kinds.Of(entity.Kind[*contract.DrillInput, contract.DrillStep, contract.DrillView]{
	Kind: contract.KindDrill, Read: contract.RefreshDrill,
	Activities: contract.Names(
		contract.AdmitDrill, contract.PrepareDrillNamespace, contract.StartDrillRestore, contract.StartDrillJob, contract.CheckDrill,
		contract.ConcludeDrill, contract.ReleaseDrillVolumes, contract.RemoveDrillNamespace, contract.RemoveDrillRestore,
		contract.EndDrill,
	),
	Settled: Settled, Next: next, Awaited: awaited, Begin: begin,
	Phases: func(v contract.DrillView) (string, string) { return v.Phase, v.Velero.Phase },
	Waits: contract.DrillView{
		Found: true, Phase: "Restoring", Admitted: true, NamespaceExists: true, Prepared: true,
		Velero: contract.VeleroDrillView{Exists: true, Name: "d", Phase: "InProgress", Begun: true},
	},
})

type run = entity.Run[*contract.DrillInput, contract.DrillStep, contract.DrillView]

// drillRun is what a run of this kind has besides.
type drillRun struct {
	*run
	turn turns.Held
	// namespace is what the last step on the namespace found.
	namespace contract.DrillNamespaceView
	// full counts how often in a row no place was free.
	full int
	// unserved: no worker has taken that step.
	unserved bool
	// givenUp is why the check that is due was given up.
	givenUp string
	// startTried: the restore could not be started since the last wait.
	startTried bool
}

func begin(_ workflow.Context, r *run) error {
	own := &drillRun{run: r, turn: turns.OfDrill(r.In.ObjectInput, &r.In.Turn)}
	r.Do, r.Passed, r.Drain, r.Wait = own.do, own.passed, own.drain, own.wait
	return nil
}

func (r *drillRun) do(ctx workflow.Context, step activity) (view contract.DrillView, err error) {
	in := contract.DrillStep{Ref: r.In.Ref}
	switch step {
	case contract.StartDrillRestore:
		in.Turn, r.startTried = r.In.Turn.Remaining(workflow.Now(ctx)), true
		view, err = call.LocalFirst(ctx, r.Options.Limits, step, in)
	case stepPrepare:
		view, err = r.withNamespace(ctx, contract.PrepareDrillNamespace, in)
	case stepRemoveNamespace:
		if _, err = call.LocalFirst(ctx, r.Options.Limits, contract.ReleaseDrillVolumes, in); err == nil {
			view, err = r.withNamespace(ctx, contract.RemoveDrillNamespace, in)
		}
	case contract.CheckDrill:
		view, err = r.checkNext(ctx, in)
	default:
		in.GivenUp = r.givenUp
		view, err = call.LocalFirst(ctx, r.Options.Limits, step, in)
	}
	if err != nil {
		return view, err
	}
	if view.TurnUsed {
		r.turn.Used()
	}
	view.Prepared, view.Full, view.Unserved = r.namespace.Prepared, r.namespace.Full, r.unserved
	view.StartTried, view.GivenUp = r.startTried, r.givenUp != ""
	return view, nil
}

func (r *drillRun) passed(ctx workflow.Context) error {
	return r.turn.Settle(ctx, r.Options.Limits, turns.Use{
		Unfinished: r.View.Velero.Exists && !r.View.Velero.Finished, Waits: r.View.AwaitsTurn,
	})
}

// withNamespace has the namespace made or deleted by the worker with the rights to do so, and reads the drill again.
func (r *drillRun) withNamespace(
	ctx workflow.Context, activity contract.Activity[contract.DrillNamespace, contract.DrillNamespaceView], in contract.DrillStep,
) (contract.DrillView, error) {
	workflow.SetCurrentDetails(ctx, "**"+activity.Summary+"** `"+r.View.Namespace.Name+
		"`: the pending activity shows the last error. It waits for a holdfast-worker with --serve=drills.")
	namespace, err := call.Execute(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.DrillTaskQueue(r.In.Cluster),
		StartToCloseTimeout:    namespaceTimeout,
		ScheduleToCloseTimeout: namespacePatience,
		RetryPolicy:            call.Retry(),
	}, activity, r.View.Namespace)
	if temporal.IsCanceledError(err) {
		return contract.DrillView{}, err
	}
	if r.full++; !namespace.Full {
		r.full = 0
	}
	r.namespace, r.unserved = namespace, err != nil // the drill may have been deleted meanwhile: it is read again
	in.Waits, in.Unserved = namespace.Full, r.unserved
	return call.LocalFirst(ctx, r.Options.Limits, contract.RefreshDrill, in)
}

// startJob has the Job started by the worker with the rights to do so, and returns why the API server refuses it.
func (r *drillRun) startJob(ctx workflow.Context) (refused string, err error) {
	workflow.SetCurrentDetails(ctx, "**"+contract.StartDrillJob.Summary+"**: it waits for a holdfast-worker with --serve=drills.")
	started, err := call.Execute(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.DrillTaskQueue(r.In.Cluster),
		StartToCloseTimeout:    namespaceTimeout,
		ScheduleToCloseTimeout: max(time.Second, r.left(ctx)),
		RetryPolicy:            call.Retry(),
	}, contract.StartDrillJob, r.View.Namespace)
	switch {
	case temporal.IsCanceledError(err):
		return "", err
	case err != nil: // the check waits for the Job until the drill is late, and is not made then
		workflow.GetLogger(ctx).Warn("the Job of the drill was not started", "error", err)
	}
	return started.Refused, nil
}

func (r *drillRun) left(ctx workflow.Context) time.Duration {
	return max(0, time.Unix(r.View.Deadline, 0).Sub(workflow.Now(ctx)))
}

// checkNext runs the check that is due. One that has no result when the time is over, whatever the reason, is given up: nothing
// may hold the namespace for ever.
func (r *drillRun) checkNext(ctx workflow.Context, in contract.DrillStep) (view contract.DrillView, err error) {
	in.Check = r.View.Check
	if in.Check == holdfastv1alpha1.CheckJob && !r.View.Late {
		if in.Refused, err = r.startJob(ctx); err != nil {
			return view, err
		}
	}
	view, err = r.check(ctx, in)
	if err == nil || temporal.IsCanceledError(err) {
		return view, err
	}
	r.givenUp = "check " + in.Check + " was given up: " + call.Cause(err)
	return call.LocalFirst(ctx, r.Options.Limits, contract.RefreshDrill, contract.DrillStep{Ref: r.In.Ref})
}

// check runs a check, and waits for its result until the drill is late.
func (r *drillRun) check(ctx workflow.Context, in contract.DrillStep) (contract.DrillView, error) {
	workflow.SetCurrentDetails(ctx, "**Checking** "+in.Check+": the pending activity shows what is waited for, until "+
		clock(r.View.Deadline)+" at the latest.")
	return call.Execute(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    checkTimeout,
		HeartbeatTimeout:       checkHeartbeat,
		ScheduleToCloseTimeout: checkTimeout + r.left(ctx),
		RetryPolicy:            call.Retry(),
	}, contract.CheckDrill.WithSummary("Check "+in.Check), in)
}

func (r *drillRun) drain() int {
	return entity.DrainNoting(r.Changed, func(changed contract.VeleroChanged) { r.turn.Note(changed.Turn) })
}

// wait waits until a signal comes or something is due without one.
func (r *drillRun) wait(ctx workflow.Context) error {
	err := r.BlockFor(ctx, r.wakeIn(workflow.Now(ctx)), func() {})
	r.namespace.Full, r.unserved, r.startTried = false, false, false // try again
	return err
}

// wakeIn is how long nothing is due unless a signal comes.
func (r *drillRun) wakeIn(now time.Time) time.Duration {
	wait := maxWait
	switch {
	case r.View.Ahead > 0:
		wait = min(maxQueued, time.Duration(r.View.Ahead)*placePoll)
	case r.View.Full: // those that have made a namespace at the same time, and given it back, try again at different times
		wait = min(placePoll<<min(r.full-1, maxDoublings), maxPlacePoll) + time.Duration(r.spread())*time.Second
	case r.View.Unserved, r.View.AwaitsTurn:
		wait = placePoll
	case r.View.Kept:
		return max(time.Unix(r.View.KeptUntil, 0).Sub(now), time.Second)
	}
	if left := time.Unix(r.View.Deadline, 0).Sub(now); left > 0 {
		wait = min(wait, left)
	}
	return max(wait, time.Second)
}

// spread is a number of seconds below 15, another one for most drills.
func (r *drillRun) spread() uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(r.In.Ref.UID))
	return hash.Sum32() % uint32(placePoll/time.Second)
}
