package coordination

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// retryInterval is the wait before a request that got no answer is sent again.
	retryInterval = time.Second
	// updateOutlived is the type of the error with which Temporal ends an accepted update whose workflow has closed.
	updateOutlived = "AcceptedUpdateCompletedWorkflow"
)

// Activities sends requests to the workflows that coordinate FoundationDB backups: the throttle of first snapshots, the owners of
// FoundationDB clusters and the guards of containers.
type Activities struct {
	// Temporal is the client of the namespace in which they run.
	Temporal client.Client
}

// Register registers the activities with a worker under their wire names.
func (c *Activities) Register(registry worker.ActivityRegistry) {
	activities.Register(registry, contract.RequestFDBCommand, c.RequestCommand)
	activities.Register(registry, contract.RequestFDBContainer, c.RequestContainer)
	activities.RegisterEffect(registry, contract.SignalFDBThrottle, c.SignalThrottle)
	c.RegisterShared(registry)
}

// RegisterShared registers what every coordinator needs: for the workers of contract.SharedTaskQueue, and for those that serve
// the queue before Velero.
func (c *Activities) RegisterShared(registry worker.ActivityRegistry) {
	activities.Register(registry, contract.DescribeWorkflows, c.Describe)
}

// RequestCommand sends the request to the owner of a FoundationDB cluster, which it starts if it does not run, and waits for the
// answer.
func (c *Activities) RequestCommand(ctx context.Context, in contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	return consult[contract.FDBCommandAnswer](ctx, c.Temporal, request{
		id: contract.FDBClusterID(in.Cluster), kind: contract.KindFDBCluster,
		input: contract.FDBClusterInput{Cluster: in.Cluster}, name: in.Cluster, update: contract.UpdateFDBCluster, content: in,
	})
}

// request is an Update of a workflow on contract.SharedTaskQueue, which is started if it does not run.
type request struct {
	id    string
	kind  contract.Kind
	input any
	// name is shown in lists of workflows.
	name    string
	update  string
	content any
}

// title names the workflow in an error message.
func (c request) title() string {
	summary := c.kind.SummaryOf(c.name)
	return strings.ToLower(summary[:1]) + summary[1:]
}

// consult waits for the answer, also when the workflow ends or continues as new meanwhile. A repeated attempt waits for the
// answer to the same request.
func consult[Answer any](ctx context.Context, temporalClient client.Client, about request) (Answer, error) {
	stop := activities.Beating(ctx)
	defer stop()
	for {
		answer, err := consultOnce[Answer](ctx, temporalClient, about)
		var application *temporal.ApplicationError
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return answer, ctx.Err()
		case errors.As(err, &application) && application.Type() != updateOutlived:
			return answer, application
		case !unanswered(err):
			return answer, fmt.Errorf("request to the %s: %w", about.title(), err)
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(retryInterval):
		}
	}
}

func consultOnce[Answer any](ctx context.Context, temporalClient client.Client, about request) (Answer, error) {
	var answer Answer
	info := activity.GetInfo(ctx)
	start := temporalClient.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID:                       about.id,
		TaskQueue:                contract.SharedTaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowTaskTimeout:      contract.WorkflowTaskTimeout,
		TypedSearchAttributes:    about.kind.Attributes("", contract.ObjectRef{Name: about.name}),
		StaticSummary:            about.kind.SummaryOf(about.name),
	}, about.kind.Workflow, about.input)
	update, err := temporalClient.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID:     info.WorkflowExecution.RunID + "/" + info.ActivityID, // the workflow's ID would make it too long
			UpdateName:   about.update,
			Args:         []any{about.content},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return answer, err
	}
	return answer, update.Get(ctx, &answer)
}

// unanswered reports whether the workflow did not answer: it was ending, it has too many requests, or it has not answered yet.
// Every other error is the activity's own, which people can see.
func unanswered(err error) bool {
	var (
		waited      *client.WorkflowUpdateServiceTimeoutOrCanceledError
		application *temporal.ApplicationError
		gone        *serviceerror.NotFound
		busy        *serviceerror.ResourceExhausted
		aborted     *serviceerror.Aborted
		multi       *serviceerror.MultiOperationExecution
	)
	if errors.As(err, &multi) {
		for _, each := range multi.OperationErrors() {
			if each != nil && unanswered(each) {
				return true
			}
		}
	}
	return errors.As(err, &waited) || errors.As(err, &application) || errors.As(err, &gone) ||
		errors.As(err, &busy) || errors.As(err, &aborted)
}

// SignalThrottle signals the request to the throttle, which it starts if it does not run.
func (c *Activities) SignalThrottle(ctx context.Context, request contract.FDBSlotRequest) error {
	_, err := c.Temporal.SignalWithStartWorkflow(ctx, contract.FDBThrottleID(request.Cluster), contract.SignalSlot, request,
		client.StartWorkflowOptions{
			TaskQueue:             contract.FDBWorkflowTaskQueue(request.Cluster),
			WorkflowTaskTimeout:   contract.WorkflowTaskTimeout,
			TypedSearchAttributes: contract.KindFDBThrottle.Attributes(request.Cluster, contract.ObjectRef{}),
			StaticSummary:         contract.KindFDBThrottle.SummaryOf(request.Cluster),
		}, contract.KindFDBThrottle.Workflow, contract.FDBThrottleInput{Cluster: request.Cluster})
	if err != nil {
		return fmt.Errorf("signal the throttle of first snapshots: %w", err)
	}
	return nil
}

// describedAtATime is how many workflows are asked about at a time: a queue may have a thousand, and an attempt 20 seconds.
const describedAtATime = 8

// Describe returns the workflows that do not run. One that has continued as new runs.
func (c *Activities) Describe(ctx context.Context, holders contract.Workflows) (contract.Workflows, error) {
	ended := make([]bool, len(holders.WorkflowIDs))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(describedAtATime)
	for i, id := range holders.WorkflowIDs {
		all.Go(func() (err error) {
			ended[i], err = c.ended(ctx, id)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return contract.Workflows{}, err
	}
	var closed contract.Workflows
	for i, id := range holders.WorkflowIDs {
		if ended[i] {
			closed.WorkflowIDs = append(closed.WorkflowIDs, id)
		}
	}
	return closed, nil
}

// ended reports whether a workflow does not run.
func (c *Activities) ended(ctx context.Context, id string) (bool, error) {
	described, err := c.Temporal.DescribeWorkflowExecution(ctx, id, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("describe workflow %s: %w", id, err)
	}
	return Ended(described.GetWorkflowExecutionInfo().GetStatus()), nil
}

// Ended reports whether a workflow of that status has ended. One that has continued as new runs.
func Ended(status enumspb.WorkflowExecutionStatus) bool {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED,
		enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return true
	}
	return false
}
