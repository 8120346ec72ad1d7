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
	"holdfast.dev/holdfast/workflows/fdb/requests"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/turns"
)

const (
	// fdbClusterSettling is how long after its start an owner pauses no agents: its list of members may have been lost, and
	// all must have had time for a request.
	fdbClusterSettling = 30 * time.Second
	// FDBClusterIdle is how long an owner without members waits for a request.
	FDBClusterIdle = 10 * time.Minute
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindFDBCluster, Activities: contract.Names(contract.RequestFDBCommand, contract.DescribeWorkflows),
	Run: func(call.Options) any { return Workflow },
}

// Workflow owns one FoundationDB cluster: what changes its backups is run here one at a time, in the order of the requests, no
// matter from which Kubernetes cluster they come. It knows what every backup wants of the agents, which are paused for all or
// none. It ends when there are no members and no request has come for a while; the next request starts it again.
func Workflow(ctx workflow.Context, in contract.FDBClusterInput) error {
	if in.Since == 0 {
		in.Since = workflow.Now(ctx).Unix()
	}
	run := &clusterRun{in: in, lastRequest: workflow.Now(ctx)}
	err := errors.Join(
		workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBClusterState, error) {
			return contract.FDBClusterState{
				Members: run.in.Members, Running: run.running, Requester: run.requester, Waiting: run.waiting(),
			}, nil
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateFDBCluster, run.request, workflow.UpdateHandlerOptions{
			Validator:   run.validate,
			Description: "Enter the state that a backup requests of the agents, and run a command for it",
		}))
	if err != nil {
		return err
	}
	err = turns.Loop{Pass: run.pass, Due: run.due, AtRest: run.atRest, Deserted: run.deserted, Next: run.next}.Serve(ctx)
	if temporal.IsCanceledError(err) {
		return run.leave(ctx, err)
	}
	return err
}

// clusterRun is the state of one run. Nothing in it outlives the run except what FDBClusterInput hands over.
type clusterRun struct {
	in contract.FDBClusterInput
	// Commands run one at a time in the order of their requests, which a workflow.Mutex does not keep: each gets the next of the
	// tickets, and turn is the ticket of the one whose turn it is.
	tickets, turn int
	running       *contract.FDBCommand // nil if none runs
	requester     string
	begunAt       time.Time
	lastRequest   time.Time // when the last request came
	// changed are members to be signalled: others that oppose them have come or gone.
	changed []string
	idle    workflow.Future // nil while there are members
	census  turns.Census
}

func (r *clusterRun) pass(ctx workflow.Context) error {
	r.signalChanged(ctx)
	r.prune(ctx)
	r.attend(ctx)
	r.show(ctx)
	return nil
}

// due reports whether there is something for a pass.
func (r *clusterRun) due(ctx workflow.Context) bool {
	return len(r.changed) > 0 || r.census.Ready() ||
		(len(r.in.Members) == 0 && !r.deserted(ctx) && (r.idle == nil || r.idle.IsReady()))
}

// atRest: no signal and no check of this run is under way.
func (r *clusterRun) atRest() bool { return len(r.changed) == 0 && !r.census.Busy() }

// next hands everything over to the next run.
func (r *clusterRun) next(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, contract.KindFDBCluster.Workflow, r.in)
}

// deserted: there are no members, and no request has come for a while.
func (r *clusterRun) deserted(ctx workflow.Context) bool {
	return len(r.in.Members) == 0 && workflow.Now(ctx).Sub(r.lastRequest) >= FDBClusterIdle
}

// attend sets the timer that wakes the run when it may be deserted.
func (r *clusterRun) attend(ctx workflow.Context) {
	if r.idle != nil && r.idle.IsReady() {
		r.idle = nil
	}
	if left := r.lastRequest.Add(FDBClusterIdle).Sub(workflow.Now(ctx)); len(r.in.Members) == 0 && r.idle == nil && left > 0 {
		r.idle = workflow.NewTimer(ctx, left)
	}
}

// leave ends a run that was cancelled, once the commands that it has begun have ended: the next owner would not know of them.
func (r *clusterRun) leave(ctx workflow.Context, cause error) error {
	rest, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if err := workflow.Await(rest, func() bool { return workflow.AllHandlersFinished(rest) }); err != nil {
		return err
	}
	return cause
}

// validate refuses requests that can never be answered. They leave no trace in the history.
func (r *clusterRun) validate(request contract.FDBCommandRequest) error {
	refuse := func(format string, args ...any) error {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorFDBRequestInvalid, nil)
	}
	switch {
	case request.Cluster != r.in.Cluster:
		return refuse("cluster: the request for %q was sent to the owner of %q", request.Cluster, r.in.Cluster)
	case request.Member.WorkflowID == "" || request.Member.Name == "":
		return refuse("member: must have a workflow ID and a name")
	case request.Command == nil:
		return nil
	case request.Queue == "":
		return refuse("queue: must be the task queue on which to run the command")
	case request.Until <= 0:
		return refuse("until: must be the time after which the command no longer begins")
	}
	switch request.Command.Operation {
	case contract.FDBStart, contract.FDBModify, contract.FDBAbort, contract.FDBPause, contract.FDBResume, contract.FDBDrillClear:
		return nil
	case contract.FDBRestoreStart, contract.FDBRestoreAbort:
		if request.Member.Paused {
			return refuse("member: a restore cannot pause the agents, which it needs")
		}
		return nil
	}
	return refuse("command: unknown operation %q", request.Command.Operation)
}

// request handles UpdateFDBCluster. A cancellation of the owner ends no command: another could be begun beside it.
func (r *clusterRun) request(ctx workflow.Context, request contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	r.lastRequest = workflow.Now(ctx)
	r.census.NoteMessage(request.Member.WorkflowID)
	r.enroll(request)
	var answer contract.FDBCommandAnswer
	if request.Command != nil {
		outcome, err := r.serveInTurn(ctx, request)
		if err != nil {
			return answer, err
		}
		answer.Later, answer.Outcome = outcome == nil, outcome
	}
	r.lastRequest = workflow.Now(ctx)
	answer.Opposed = r.opposed(request.Member.WorkflowID)
	r.show(ctx)
	return answer, nil
}

// serveInTurn runs the command when those before it have ended. It returns nil if the command may not be run now.
func (r *clusterRun) serveInTurn(ctx workflow.Context, request contract.FDBCommandRequest) (*contract.FDBOutcome, error) {
	ticket := r.tickets
	r.tickets++
	if err := workflow.Await(ctx, func() bool { return r.turn == ticket }); err != nil {
		return nil, err
	}
	defer func() { r.turn++ }()
	if workflow.Now(ctx).Unix() > request.Until || !r.allowed(ctx, request) {
		return nil, nil
	}
	r.running, r.requester, r.begunAt = request.Command, request.Member.Name, workflow.Now(ctx)
	r.show(ctx)
	outcome := runCommand(ctx, request)
	r.running, r.requester = nil, ""
	return &outcome, nil
}

// waiting returns how many commands wait for their turn.
func (r *clusterRun) waiting() int {
	waiting := r.tickets - r.turn
	if r.running != nil {
		waiting--
	}
	return waiting
}

// allowed reports whether the command may run, given what all members are known to want of the agents. Only pause and resume
// concern other members than the requester.
func (r *clusterRun) allowed(ctx workflow.Context, request contract.FDBCommandRequest) bool {
	switch request.Command.Operation {
	case contract.FDBPause:
		settled := workflow.Now(ctx).Unix()-r.in.Since >= int64(fdbClusterSettling/time.Second)
		return settled && r.wants(request.Member.WorkflowID, true) &&
			!slices.ContainsFunc(r.in.Members, func(m contract.FDBMember) bool { return !m.Paused })
	case contract.FDBResume:
		held := len(r.in.Members) > 0 &&
			!slices.ContainsFunc(r.in.Members, func(m contract.FDBMember) bool { return !m.Paused })
		return !request.Member.Paused && !held
	}
	return true
}

// runCommand runs a command on the requester's queue, once: after an unknown outcome the state has to be read first. The owner
// serves several namespaces and has no fairness key; a command has that of its object.
func runCommand(ctx workflow.Context, request contract.FDBCommandRequest) contract.FDBOutcome {
	run := contract.RunFDBCommand
	switch request.Command.Operation {
	case contract.FDBRestoreStart, contract.FDBRestoreAbort:
		run = contract.RunFDBRestoreCommand
	}
	outcome, err := call.Execute(ctx, workflow.ActivityOptions{
		TaskQueue:              request.Queue,
		ScheduleToStartTimeout: contract.FDBCommandStart,
		StartToCloseTimeout:    requests.CommandRun(request.Command.Operation),
		HeartbeatTimeout:       requests.Heartbeat,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Priority:               request.Command.Ref.Fairness(),
	}, run.WithSummary(fdbCommandSummary(*request.Command, request.Member.Name)), *request.Command)
	if err != nil {
		return contract.FDBOutcome{Failure: fdbFailureOf(err, request)}
	}
	return outcome
}

// fdbFailureOf describes the failure of an activity that returned no outcome. If its worker was killed, the heartbeat timeout has
// passed by now, and its tool has ended with it.
func fdbFailureOf(err error, request contract.FDBCommandRequest) *contract.FDBFailure {
	trouble := &contract.FDBFailure{Class: contract.FDBClassTimeout}
	var timeout *temporal.TimeoutError
	var application *temporal.ApplicationError
	switch {
	case errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		trouble.Class = contract.FDBClassNoWorker
		trouble.Message = requests.NotStarted(string(request.Command.Operation), request.Queue, contract.FDBCommandStart)
	case errors.As(err, &timeout):
		trouble.Message = fmt.Sprintf("the worker that ran %s was lost, or did not end it within %s: whether it took effect is not "+
			"known; the state is read again before anything is repeated",
			request.Command.Operation, requests.CommandRun(request.Command.Operation))
	case errors.As(err, &application):
		trouble.Class = contract.FDBClassOther
		trouble.Message = fmt.Sprintf("%s: %s; whether it took effect is not known; the state is read again before anything is "+
			"repeated", request.Command.Operation, application.Message())
	default:
		trouble.Message = fmt.Sprintf("%s was interrupted: whether it took effect is not known; the state is read again before "+
			"anything is repeated", request.Command.Operation)
	}
	return trouble
}
