package restore

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

func (r *restoreRun) resourceTimeout(ctx workflow.Context) time.Duration {
	return call.Flag(ctx, "resource-timeout", r.Options.Timeout(), call.DefaultResourceTimeout)
}

const (
	// resolveTimeout limits the inspection that finds out what would be restored: up to two listings of the container.
	resolveTimeout = 12 * time.Minute
	// endingInspect limits an inspection of the destination, and endingWait the wait for an abort's turn, in a namespace that is
	// being deleted.
	endingInspect = time.Minute
	endingWait    = 30 * time.Second
)

// inspect reads the destination. If it does not answer, that is a finding, not an error.
func (r *restoreRun) inspect(ctx workflow.Context, resolve bool) error {
	before := r.seen.Restore
	r.seen, r.resolved = contract.FDBRestoreInspection{Restore: before}, false // the last known progress, to be shown
	if !InspectDue(r.View) {
		return nil
	}
	inspect, limit, attempts := contract.InspectFDBRestore, requests.InspectTimeout, int32(requests.InspectAttempts)
	if resolve {
		inspect = inspect.WithSummary("Find out what would be restored, and whether the destination is fit for it")
		limit = resolveTimeout
	}
	if r.View.NamespaceEnding {
		limit, attempts = endingInspect, 1
	}
	seen, err := call.Execute(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.FDBTaskQueue(r.In.Cluster),
		ScheduleToStartTimeout: requests.PickUp,
		StartToCloseTimeout:    limit,
		HeartbeatTimeout:       requests.Heartbeat,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: call.RetryInterval, MaximumAttempts: attempts},
	}, inspect, contract.FDBRestoreInspect{Ref: r.In.Ref, Resolve: resolve})
	if temporal.IsCanceledError(err) {
		return err
	}
	if err != nil {
		seen = contract.FDBRestoreInspection{Failure: requests.FailureOf(r.In.Cluster, err)}
	}
	if seen.Failure != nil {
		seen.Restore = before
	}
	r.seen, r.resolved = seen, resolve && seen.Failure == nil
	r.In.Memory = Notice(r.situation(ctx))
	return nil
}

// operate does what is due, one step after the other.
func (r *restoreRun) operate(ctx workflow.Context) error {
	for range requests.MaxCommandsInRow {
		if err := r.report(ctx); err != nil {
			return err
		}
		switch decision := Decide(r.situation(ctx)); decision.Step {
		case StepResolve:
			if err := r.inspect(ctx, true); err != nil {
				return err
			}
		case StepRead:
			if goOn, err := r.read(ctx); err != nil || !goOn {
				return err
			}
		case StepPlan:
			if goOn, err := r.plan(ctx); err != nil || !goOn {
				return err
			}
		case StepCommand:
			return r.command(ctx, decision.Command)
		case StepFinalize:
			return r.finalize(ctx)
		default:
			return nil
		}
	}
	return nil
}

// report brings the owner up to date.
func (r *restoreRun) report(ctx workflow.Context) error {
	if r.In.Memory.Owner != "" && r.In.Memory.Owner != r.View.Owner && r.View.Owner != "" {
		if err := r.leave(ctx); err != nil { // the cluster was recreated
			return err
		}
	}
	if !JoinDue(r.situation(ctx)) || (!r.news && r.In.Memory.Owner == r.View.Owner) {
		return nil
	}
	_, err := r.request(ctx, contract.FDBCommandRequest{})
	return err
}

// plan writes down what is going to be restored, and reports whether the pass goes on.
func (r *restoreRun) plan(ctx workflow.Context) (bool, error) {
	plan := NewPlan(r.situation(ctx))
	if plan == nil {
		r.postponed = true
		return false, nil
	}
	err := r.See(call.LocalFirst(ctx, r.Options.Limits, contract.PlanFDBRestore,
		contract.FDBRestorePlanning{Ref: r.In.Ref, Generation: r.View.Generation, Plan: *plan}))
	if err != nil || r.View.Plan == nil {
		r.postponed = true
		return false, err
	}
	return !Settled(r.View), nil
}

// command runs a command through the owner. The restore is inspected in any case: a command that failed may have had its effect.
func (r *restoreRun) command(ctx workflow.Context, command contract.FDBCommand) error {
	command.Ref = r.In.Ref
	answer, err := r.request(ctx, contract.FDBCommandRequest{Command: &command})
	if err != nil {
		return err
	}
	switch outcome := answer.Outcome; {
	case answer.Later || outcome == nil:
		r.failed = &Attempt{Operation: command.Operation, Failure: &contract.FDBFailure{
			Class: contract.FDBClassOther, Message: "other commands on the FoundationDB cluster have used up the time limit",
		}}
		return nil
	case outcome.Stale:
		r.postponed = true
		return nil
	case outcome.Failure != nil:
		r.failed = &Attempt{Operation: command.Operation, Failure: outcome.Failure}
		if command.Operation == contract.FDBRestoreStart && outcome.Failure.Class == contract.FDBClassTimeout {
			r.In.Memory.DoubtUntil = workflow.Now(ctx).Add(contract.FDBRestoreRun).Unix()
		}
	default:
		r.In.Memory.Quiet = 0
	}
	return r.inspect(ctx, false)
}

// request sends a request to the owner of the destination, which learns by it that this restore needs the agents.
func (r *restoreRun) request(ctx workflow.Context, request contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	request.Member.Name = r.name()
	if request.Cluster == "" {
		request.Cluster, request.Leave = r.View.Owner, Stopping(r.View)
	}
	summary := "Enter this restore with the owner of the destination"
	if request.Command != nil {
		summary = fmt.Sprintf("Run %s", Tool(request.Command.Operation))
	}
	wait := contract.FDBRequestWait
	if r.View.NamespaceEnding {
		wait = endingWait
	}
	answer, answered, err := requests.ToOwner(ctx, r.In.Cluster, request, summary, wait)
	if err == nil && answered && !request.Leave {
		r.In.Memory.Owner, r.opposed, r.news = request.Cluster, answer.Opposed, false
	}
	return answer, err
}

func (r *restoreRun) name() string {
	return requests.UserName("restore "+r.In.Ref.String(), r.In.Cluster)
}

// leave signs the restore off with the owner that knows of it.
func (r *restoreRun) leave(ctx workflow.Context) error {
	if _, err := r.request(ctx, contract.FDBCommandRequest{Cluster: r.In.Memory.Owner, Leave: true}); err != nil {
		return err
	}
	r.In.Memory.Owner, r.opposed = "", nil
	return nil
}

// read reports to the guard of the container that the restore reads it, and returns whether the pass goes on. What was resolved
// before the guard knew may have been expired since, and is resolved again.
func (r *restoreRun) read(ctx workflow.Context) (bool, error) {
	container, now := r.situation(ctx).Container(), workflow.Now(ctx)
	if r.In.Memory.Reading != "" && r.In.Memory.Reading != container {
		if err := r.leaveContainer(ctx); err != nil {
			return false, err
		}
	}
	answer, err := r.requestContainer(ctx, contract.FDBContainerRequest{
		Container: container, Action: contract.FDBContainerUse,
		User: contract.FDBContainerUser{ReadsUntil: now.Add(contract.FDBRestoreReads).Unix()},
	}, "Keep the backup from being expired while it is read")
	if err != nil {
		return false, err
	}
	if r.busy = answer.Busy; r.busy != "" {
		return false, nil
	}
	r.In.Memory.Reading, r.In.Memory.ReadingSince = container, now.Unix()
	r.resolved = false
	return true, nil
}

func (r *restoreRun) leaveContainer(ctx workflow.Context) error {
	leave := contract.FDBContainerRequest{Container: r.In.Memory.Reading, Action: contract.FDBContainerLeave}
	_, err := r.requestContainer(ctx, leave, "Report that the backup is no longer read")
	if err != nil {
		return err
	}
	r.In.Memory.Reading, r.In.Memory.ReadingSince = "", 0
	return nil
}

// requestContainer sends a request to the guard of a container. If it does not answer, that is no error: the container counts as
// busy.
func (r *restoreRun) requestContainer(
	ctx workflow.Context, request contract.FDBContainerRequest, summary string,
) (answer contract.FDBContainerAnswer, err error) {
	request.User.Name, request.User.Cluster, request.User.Namespace = r.name(), r.In.Cluster, r.In.Ref.Namespace
	answer, err = requests.ToContainer(ctx, request, requests.GuardTimeout, summary)
	if err == nil || temporal.IsCanceledError(err) {
		return answer, err
	}
	workflow.GetLogger(ctx).Warn("the guard of the container has not answered", "error", err)
	answer.Busy = "its guard has not answered: " + call.Cause(err)
	return answer, nil
}
