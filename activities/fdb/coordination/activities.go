package coordination

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/workflows/connect"
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
func (c *Activities) RequestCommand(
	ctx context.Context, in contract.FDBCommandRequest,
) (answer contract.FDBCommandAnswer, err error) {
	err = c.consult(ctx, connect.FDBCluster(in.Cluster), contract.UpdateFDBCluster, in, &answer)
	return answer, err
}

// RequestContainer sends the request to the guard of a container, which it starts if it does not run, and waits for the answer.
func (c *Activities) RequestContainer(
	ctx context.Context, in contract.FDBContainerRequest,
) (answer contract.FDBContainerAnswer, err error) {
	err = c.consult(ctx, connect.FDBContainer(in.Container), contract.UpdateFDBContainer, in, &answer)
	return answer, err
}

// consult waits for the answer to an Update, also when the workflow ends or continues as new meanwhile. A repeated attempt waits
// for the answer to the same request.
func (c *Activities) consult(ctx context.Context, about connect.Workflow, update string, in, answer any) error {
	stop := activities.Beating(ctx)
	defer stop()
	info := activity.GetInfo(ctx)
	id := info.WorkflowExecution.RunID + "/" + info.ActivityID // the workflow's ID would make it too long
	for {
		err := about.UpdateWithStart(ctx, c.Temporal, id, update, in, answer)
		var application *temporal.ApplicationError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &application) && application.Type() != updateOutlived:
			return application
		case !unanswered(err):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryInterval):
		}
	}
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
	return connect.FDBThrottle(request.Cluster).SignalWithStart(ctx, c.Temporal, contract.SignalSlot, request)
}

// describedAtATime is how many workflows are asked about at a time: a queue may have a thousand, and an attempt 20 seconds.
const describedAtATime = 8

// Describe returns the workflows that do not run. One that has continued as new runs.
func (c *Activities) Describe(ctx context.Context, holders contract.Workflows) (contract.Workflows, error) {
	ended := make([]bool, len(holders.WorkflowIDs))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(describedAtATime)
	for i, id := range holders.WorkflowIDs {
		all.Go(func() error {
			run, err := connect.Describe(ctx, c.Temporal, id)
			ended[i] = run == nil || connect.Ended(run)
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
