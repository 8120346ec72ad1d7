package requests

import (
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

// ToOwner sends a request to the owner of a FoundationDB cluster. The command, if there is one, may begin within wait, and
// runs on the tools' queue of the Kubernetes cluster. With a wait below contract.FDBRequestWait the request is sent once, and
// limited to twice that time. An owner that does not answer is no error but an outcome that does not say whether anything was
// done.
func ToOwner(
	ctx workflow.Context, cluster string, request contract.FDBCommandRequest, summary string, wait time.Duration,
) (answer contract.FDBCommandAnswer, answered bool, err error) {
	request.Member.WorkflowID = workflow.GetInfo(ctx).WorkflowExecution.ID
	request.Queue = contract.FDBTaskQueue(cluster)
	request.Until = workflow.Now(ctx).Add(wait).Unix()
	limit, retry := contract.FDBRequestTimeout, call.Retry()
	if request.Command != nil { // some commands may run for longer than contract.FDBCommandRun
		limit += CommandRun(request.Command.Operation) - contract.FDBCommandRun
	}
	if wait < contract.FDBRequestWait { // somebody waits for the outcome, and goes on without it
		limit, retry.MaximumAttempts = 2*wait, 1
	}
	answer, err = call.Execute(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: limit,
		StartToCloseTimeout:    limit,
		HeartbeatTimeout:       Heartbeat,
		RetryPolicy:            retry,
	}, contract.RequestFDBCommand.WithSummary(summary), request)
	if err == nil || temporal.IsCanceledError(err) {
		return answer, err == nil, err
	}
	workflow.GetLogger(ctx).Warn("the owner of the FoundationDB cluster has not answered", "error", err)
	return contract.FDBCommandAnswer{Outcome: &contract.FDBOutcome{Failure: &contract.FDBFailure{
		Class: contract.FDBClassOther, Message: "the owner of the FoundationDB cluster has not answered: " + call.Cause(err),
	}}}, false, nil
}

// ToContainer sends a request to the guard of a container, and waits for the answer at most for timeout. The user is this
// workflow, unless the request names another.
func ToContainer(
	ctx workflow.Context, request contract.FDBContainerRequest, timeout time.Duration, summary string,
) (contract.FDBContainerAnswer, error) {
	if request.User.WorkflowID == "" {
		request.User.WorkflowID = workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	return call.Execute(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: timeout,
		StartToCloseTimeout:    timeout,
		HeartbeatTimeout:       Heartbeat,
		RetryPolicy:            call.Retry(),
	}, contract.RequestFDBContainer.WithSummary(summary), request)
}

// ShowRelease shows, for as long as Temporal keeps the workflow, how an object was released: in a namespace that is being deleted
// nothing else shows it. It is shown, too, while a release is retried.
func ShowRelease(ctx workflow.Context, note string, release func() error) error {
	text := "**Deleted.**"
	if note = strings.TrimSpace(note); note != "" {
		text = "**Deleted:** " + details.OneLine(note)
	}
	workflow.SetCurrentDetails(ctx, text)
	if err := release(); err != nil {
		return err
	}
	workflow.SetCurrentDetails(ctx, text)
	return nil
}

// GuardTimeout is how long callers wait for a guard whose answer they do not need.
const GuardTimeout = time.Minute

// WithName adds a name unless it is there: users outside the namespace have one in common.
func WithName(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
