package drill

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

const (
	// leastTime is what a survey or a check has, also of a drill that is late.
	leastTime = 2 * time.Minute
	// surveyAttempt limits one attempt of a survey.
	surveyAttempt = 3 * time.Minute
)

// left is the time until the deadline, and leastTime in any case.
func (r *drillRun) left(ctx workflow.Context) time.Duration {
	return max(leastTime, time.Unix(r.View.Deadline, 0).Sub(workflow.Now(ctx)))
}

// reading is how the tools read the databases.
func (r *drillRun) reading(total, attempt time.Duration) workflow.ActivityOptions {
	retry := call.Retry()
	retry.MaximumInterval = running
	return workflow.ActivityOptions{
		TaskQueue:              contract.FDBTaskQueue(r.In.Cluster),
		ScheduleToCloseTimeout: total,
		StartToCloseTimeout:    attempt,
		HeartbeatTimeout:       requests.Heartbeat,
		RetryPolicy:            retry,
		WaitForCancellation:    true, // only clear waits for it
	}
}

// await waits until the tools have read, or the drill no longer wants that: ended is false then, with the drill as it is now, and
// the caller cancels them. Any signal may mean so: the drill is read again, and the tools go on meanwhile.
func (r *drillRun) await(
	ctx workflow.Context, reading workflow.Future,
) (view contract.FDBDrillView, ended bool, err error) {
	for {
		selector := workflow.NewSelector(ctx)
		selector.AddReceive(r.Changed, func(workflow.ReceiveChannel, bool) {})
		selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
		selector.AddFuture(reading, func(workflow.Future) {})
		selector.Select(ctx)
		if ctx.Err() != nil || reading.IsReady() {
			return view, ctx.Err() == nil, ctx.Err()
		}
		r.Drain() // before it is read: what comes meanwhile has it read again
		if view, err = r.observe(ctx); err != nil {
			return view, false, err
		}
		if !stays(view) {
			r.cancelled = reading
			return view, false, nil
		}
	}
}

// survey reads target and source, and writes down what is restored. If that cannot be found out in time, the drill is refused.
func (r *drillRun) survey(ctx workflow.Context, in contract.FDBDrillStep) (contract.FDBDrillView, error) {
	workflow.SetCurrentDetails(ctx, "**Reading** target and source: the pending activity shows the last error.")
	reading, stop := workflow.WithCancel(ctx)
	defer stop()
	surveyed := call.Start(reading, r.reading(r.left(ctx), surveyAttempt), contract.SurveyFDBDrill, in)
	if view, ended, err := r.await(ctx, surveyed); err != nil || !ended {
		return view, err
	}
	var survey contract.FDBDrillSurvey
	err := surveyed.Get(ctx, &survey)
	if temporal.IsCanceledError(err) {
		return contract.FDBDrillView{}, err
	}
	if err != nil {
		survey = contract.FDBDrillSurvey{Refused: r.unread(err)}
	}
	in.Survey = &survey
	return call.LocalFirst(ctx, r.Options.Limits, contract.PlanFDBDrill, in)
}

// unread says that the tools have not read the target.
func (r *drillRun) unread(err error) string {
	return "the target could not be read in time: " + requests.FailureOf(r.In.Cluster, err).Message
}

// compare counts and compares what came back, until the drill is late.
func (r *drillRun) compare(ctx workflow.Context, in contract.FDBDrillStep) (contract.FDBDrillView, error) {
	workflow.SetCurrentDetails(ctx, "**Checking** what came back, until "+details.Stamp(r.View.Deadline)+
		": the pending activity shows the last error.")
	reading, stop := workflow.WithCancel(ctx)
	defer stop()
	left := r.left(ctx)
	checked := call.Start(reading, r.reading(left+requests.Heartbeat, left), contract.CheckFDBDrill, in)
	if view, ended, err := r.await(ctx, checked); err != nil || !ended {
		return view, err
	}
	var check contract.FDBDrillCheck
	err := checked.Get(ctx, &check)
	if temporal.IsCanceledError(err) {
		return contract.FDBDrillView{}, err
	}
	if err != nil {
		check = contract.FDBDrillCheck{Unmade: r.unread(err)}
	}
	r.check = &check
	return r.observe(ctx)
}

// clear has the owner clear the target, when nothing of this run reads it any more. A cancelled check learns that at its next
// heartbeat, and without one it is over in requests.Heartbeat: so the wait is short. It is here, not where the check is
// cancelled, because a drill that clears nothing, as when its namespace goes, must not wait.
func (r *drillRun) clear(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, "**Clearing** the target: its owner runs one command at a time.")
	if r.cancelled != nil {
		_ = r.cancelled.Get(ctx, nil) // nobody wants what it has read
	}
	command := contract.FDBCommand{
		Ref: r.In.Ref, Operation: contract.FDBDrillClear, Generation: r.View.Generation, Tag: r.View.Tag,
	}
	answer, _, err := requests.ToOwner(ctx, r.In.Cluster, contract.FDBCommandRequest{
		Cluster: r.View.Owner, Leave: true, Command: &command,
		Member: contract.FDBMember{Name: requests.UserName("drill "+r.In.Ref.String(), r.In.Cluster)},
	}, "Have the owner clear the target", contract.FDBRequestWait)
	if err != nil {
		return err
	}
	r.attempts++
	switch outcome := answer.Outcome; {
	case outcome != nil && outcome.Done:
		r.cleared = true
	case outcome != nil && outcome.Failure != nil:
		r.uncleared = outcome.Failure.Message
	default:
		r.uncleared = "its owner has not run the command yet"
	}
	return nil
}
