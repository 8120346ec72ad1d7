package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/tools"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/turns"
)

const (
	// fdbClusterSettling is how long after its start an owner pauses nobody: its list of members may have been lost, and
	// everybody must have had the time to ask.
	fdbClusterSettling = 30 * time.Second
	// FDBClusterIdle is how long an owner without members waits for somebody to ask.
	FDBClusterIdle = 10 * time.Minute
	// fdbCommandHeartbeat is how soon it is known that the worker that runs a command was lost.
	fdbCommandHeartbeat = 20 * time.Second
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindFDBCluster, Activities: contract.Names(contract.RequestFDBCommand, contract.DescribeWorkflows),
	Run: func(call.Options) any { return Workflow },
}

// Workflow owns one FoundationDB cluster: what changes its backups is run here one at a time, whichever Kubernetes cluster
// asks for it, in the order of asking. It knows what every backup wants of the agents, which are paused for all or none. It
// ends when nobody has a say and nobody has asked for a while; the next one to ask starts it again.
func Workflow(ctx workflow.Context, in contract.FDBClusterInput) error {
	if in.Since == 0 {
		in.Since = workflow.Now(ctx).Unix()
	}
	run := &clusterRun{
		in: in, heardAt: workflow.Now(ctx), closed: map[string]time.Time{},
	}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBClusterState, error) {
		return contract.FDBClusterState{
			Members: run.in.Members, Running: run.running, Requester: run.requester, Waiting: run.waiting(),
		}, nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateFDBCluster, run.ask, workflow.UpdateHandlerOptions{
		Validator:   run.validate,
		Description: "Say what a backup wants of the agents, and have a command run for it",
	})
	if err != nil {
		return err
	}
	return run.serve(ctx)
}

// clusterRun is the state of one run. Nothing in it outlives the run but what FDBClusterInput carries over.
type clusterRun struct {
	in contract.FDBClusterInput
	// Commands run one at a time in the order of their asking, which a workflow.Mutex does not keep: each gets the next of the
	// tickets, and turn is that of the one whose turn it is.
	tickets, turn int
	running       *contract.FDBCommand // nil if none runs
	requester     string
	begunAt       time.Time
	heardAt       time.Time // when somebody asked last
	// changed are members to be told that what the others want has changed for them.
	changed []string
	idle    workflow.Future // nil while there are members

	census turns.Census
	closed map[string]time.Time // since when a member's workflow is known not to run
}

func (r *clusterRun) serve(ctx workflow.Context) error {
	for {
		r.tell(ctx)
		r.prune(ctx)
		r.attend(ctx)
		r.show(ctx)
		// From here to the return nothing may yield: an ask that came meanwhile would not be answered.
		if r.atRest(ctx) {
			switch {
			case r.deserted(ctx):
				return nil
			case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
				return workflow.NewContinueAsNewError(ctx, contract.KindFDBCluster.Workflow, r.in)
			}
		}
		if err := workflow.Await(ctx, func() bool { return r.due(ctx) }); err != nil {
			return r.leave(ctx, err)
		}
	}
}

// due reports whether serve has something to do.
func (r *clusterRun) due(ctx workflow.Context) bool {
	ends := workflow.GetInfo(ctx).GetContinueAsNewSuggested() || r.deserted(ctx)
	return len(r.changed) > 0 || r.census.Ready() || (ends && r.atRest(ctx)) ||
		(len(r.in.Members) == 0 && (r.idle == nil || r.idle.IsReady()))
}

// atRest: nobody waits for anything of this run.
func (r *clusterRun) atRest(ctx workflow.Context) bool {
	return workflow.AllHandlersFinished(ctx) && len(r.changed) == 0 && !r.census.Busy()
}

// deserted: nobody has a say, and nobody has asked for a while.
func (r *clusterRun) deserted(ctx workflow.Context) bool {
	return len(r.in.Members) == 0 && workflow.Now(ctx).Sub(r.heardAt) >= FDBClusterIdle
}

// attend has the run wake when it may be deserted.
func (r *clusterRun) attend(ctx workflow.Context) {
	if r.idle != nil && r.idle.IsReady() {
		r.idle = nil
	}
	if left := r.heardAt.Add(FDBClusterIdle).Sub(workflow.Now(ctx)); len(r.in.Members) == 0 && r.idle == nil && left > 0 {
		r.idle = workflow.NewTimer(ctx, left)
	}
}

// leave ends a run that was cancelled: not before what it has begun has ended, since the next owner would not know of it.
func (r *clusterRun) leave(ctx workflow.Context, cause error) error {
	rest, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if err := workflow.Await(rest, func() bool { return workflow.AllHandlersFinished(rest) }); err != nil {
		return err
	}
	return cause
}

// validate refuses what can never be answered. It leaves no trace in the history.
func (r *clusterRun) validate(ask contract.FDBCommandRequest) error {
	refuse := func(format string, args ...any) error {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorFDBRequestInvalid, nil)
	}
	switch {
	case ask.Cluster != r.in.Cluster:
		return refuse("cluster: %q was asked of the owner of %q", ask.Cluster, r.in.Cluster)
	case ask.Member.WorkflowID == "" || ask.Member.Name == "":
		return refuse("member: want its workflow ID and its name")
	case ask.Command == nil:
		return nil
	case ask.Queue == "":
		return refuse("queue: want the task queue on which the command shall run")
	case ask.Until <= 0:
		return refuse("until: want the time after which the command is not begun any more")
	}
	switch ask.Command.Operation {
	case contract.FDBStart, contract.FDBModify, contract.FDBAbort, contract.FDBPause, contract.FDBResume:
		return nil
	case contract.FDBRestoreStart, contract.FDBRestoreAbort:
		if ask.Member.Paused {
			return refuse("member: a restore cannot want the agents paused, which it needs")
		}
		return nil
	}
	return refuse("command: unknown operation %q", ask.Command.Operation)
}

// ask handles UpdateFDBCluster. That the owner is cancelled ends no command: another could be begun beside it.
func (r *clusterRun) ask(ctx workflow.Context, ask contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	r.heardAt = workflow.Now(ctx)
	r.census.Hear(ask.Member.WorkflowID)
	delete(r.closed, ask.Member.WorkflowID)
	r.enroll(ask)
	var answer contract.FDBCommandAnswer
	if ask.Command != nil {
		outcome, err := r.serveInTurn(ctx, ask)
		if err != nil {
			return answer, err
		}
		answer.Later, answer.Outcome = outcome == nil, outcome
	}
	r.heardAt = workflow.Now(ctx)
	answer.Opposed = r.opposed(ask.Member.WorkflowID)
	r.show(ctx)
	return answer, nil
}

// serveInTurn runs the command when those before it have ended. It returns nil if it may not be run now.
func (r *clusterRun) serveInTurn(ctx workflow.Context, ask contract.FDBCommandRequest) (*contract.FDBOutcome, error) {
	ticket := r.tickets
	r.tickets++
	if err := workflow.Await(ctx, func() bool { return r.turn == ticket }); err != nil {
		return nil, err
	}
	defer func() { r.turn++ }()
	if workflow.Now(ctx).Unix() > ask.Until || !r.allowed(ctx, ask) {
		return nil, nil
	}
	r.running, r.requester, r.begunAt = ask.Command, ask.Member.Name, workflow.Now(ctx)
	r.show(ctx)
	outcome := runCommand(ctx, ask)
	r.running, r.requester = nil, ""
	return &outcome, nil
}

// waiting is how many commands wait for their turn.
func (r *clusterRun) waiting() int {
	waiting := r.tickets - r.turn
	if r.running != nil {
		waiting--
	}
	return waiting
}

// allowed reports whether what all want of the agents, as far as it is known now, lets the command run. Only pause and resume
// concern others than who asks.
func (r *clusterRun) allowed(ctx workflow.Context, ask contract.FDBCommandRequest) bool {
	switch ask.Command.Operation {
	case contract.FDBPause:
		settled := workflow.Now(ctx).Unix()-r.in.Since >= int64(fdbClusterSettling/time.Second)
		return settled && r.wants(ask.Member.WorkflowID, true) &&
			!slices.ContainsFunc(r.in.Members, func(m contract.FDBMember) bool { return !m.Paused })
	case contract.FDBResume:
		held := len(r.in.Members) > 0 &&
			!slices.ContainsFunc(r.in.Members, func(m contract.FDBMember) bool { return !m.Paused })
		return !ask.Member.Paused && !held
	}
	return true
}

// runCommand runs a command on the requester's queue, once: after an end that tells nothing the state has to be read again.
func runCommand(ctx workflow.Context, ask contract.FDBCommandRequest) contract.FDBOutcome {
	run := contract.RunFDBCommand
	switch ask.Command.Operation {
	case contract.FDBRestoreStart, contract.FDBRestoreAbort:
		run = contract.RunFDBRestoreCommand
	}
	outcome, err := call.Execute(ctx, workflow.ActivityOptions{
		TaskQueue:              ask.Queue,
		ScheduleToStartTimeout: contract.FDBCommandStart,
		StartToCloseTimeout:    tools.CommandRun(ask.Command.Operation),
		HeartbeatTimeout:       fdbCommandHeartbeat,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	}, run.WithSummary(fdbCommandSummary(*ask.Command, ask.Member.Name)), *ask.Command)
	if err != nil {
		return contract.FDBOutcome{Failure: fdbFailureOf(err, ask)}
	}
	return outcome
}

// fdbFailureOf says what an activity that returned no outcome leaves to be known. A worker that was killed, and its tool with
// it, is past its heartbeat when this is told.
func fdbFailureOf(err error, ask contract.FDBCommandRequest) *contract.FDBFailure {
	trouble := &contract.FDBFailure{Class: contract.FDBClassTimeout}
	var timeout *temporal.TimeoutError
	var application *temporal.ApplicationError
	switch {
	case errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		trouble.Class = contract.FDBClassNoWorker
		trouble.Message = tools.NotTaken(string(ask.Command.Operation), ask.Queue, contract.FDBCommandStart)
	case errors.As(err, &timeout):
		trouble.Message = fmt.Sprintf("the worker that ran %s was lost, or did not end it within %s: whether it took effect is not "+
			"known; the state is read again before anything is repeated", ask.Command.Operation, tools.CommandRun(ask.Command.Operation))
	case errors.As(err, &application):
		trouble.Class = contract.FDBClassOther
		trouble.Message = fmt.Sprintf("%s: %s; whether it took effect is not known; the state is read again before anything is "+
			"repeated", ask.Command.Operation, application.Message())
	default:
		trouble.Message = fmt.Sprintf("%s was broken off: whether it took effect is not known; the state is read again before "+
			"anything is repeated", ask.Command.Operation)
	}
	return trouble
}
