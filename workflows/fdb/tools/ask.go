package tools

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

// RequestOwner asks the owner of a FoundationDB cluster. The command, if there is one, may begin within wait, and runs on the
// tools' queue of the Kubernetes cluster. With less than contract.FDBRequestWait it is asked once, for twice that time at most.
// That the owner does not answer is no error but an outcome of which nothing is known to be done.
func RequestOwner(
	ctx workflow.Context, cluster string, ask contract.FDBCommandRequest, summary string, wait time.Duration,
) (answer contract.FDBCommandAnswer, answered bool, err error) {
	ask.Member.WorkflowID = workflow.GetInfo(ctx).WorkflowExecution.ID
	ask.Queue = contract.FDBTaskQueue(cluster)
	ask.Until = workflow.Now(ctx).Add(wait).Unix()
	limit, retry := contract.FDBRequestTimeout, call.Retry()
	if ask.Command != nil { // one that may run for longer is waited for as much longer
		limit += CommandRun(ask.Command.Operation) - contract.FDBCommandRun
	}
	if wait < contract.FDBRequestWait { // somebody waits for the end, whatever comes of it: it is tried once
		limit, retry.MaximumAttempts = 2*wait, 1
	}
	answer, err = call.Execute(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: limit,
		StartToCloseTimeout:    limit,
		HeartbeatTimeout:       Heartbeat,
		RetryPolicy:            retry,
	}, contract.RequestFDBCommand.WithSummary(summary), ask)
	if err == nil || temporal.IsCanceledError(err) {
		return answer, err == nil, err
	}
	workflow.GetLogger(ctx).Warn("the owner of the FoundationDB cluster has not answered", "error", err)
	return contract.FDBCommandAnswer{Outcome: &contract.FDBOutcome{Failure: &contract.FDBFailure{
		Class: contract.FDBClassOther, Message: "the owner of the FoundationDB cluster has not answered: " + call.Cause(err),
	}}}, false, nil
}

// RequestContainer asks the guard of a container, for as long as timeout. Who asks is this workflow, unless the ask names
// another.
func RequestContainer(
	ctx workflow.Context, ask contract.FDBContainerRequest, timeout time.Duration, summary string,
) (contract.FDBContainerAnswer, error) {
	if ask.User.WorkflowID == "" {
		ask.User.WorkflowID = workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	return call.Execute(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: timeout,
		StartToCloseTimeout:    timeout,
		HeartbeatTimeout:       Heartbeat,
		RetryPolicy:            call.Retry(),
	}, contract.RequestFDBContainer.WithSummary(summary), ask)
}

// LastWords shows, for as long as Temporal keeps the workflow, how an object was let go: in a namespace that is being deleted
// nothing else tells it. A release that is retried shows that meanwhile.
func LastWords(ctx workflow.Context, note string, release func() error) error {
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

// GuardTimeout is how long a guard is asked by those who do not depend on its answer.
const GuardTimeout = time.Minute

// WithName adds a name once: strangers have one in common.
func WithName(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
