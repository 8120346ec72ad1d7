package expiry

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/coordination"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// turnClosingAttempts is how often the start of a turn waits for an earlier one of the same backup to close.
const turnClosingAttempts = 4

// Coordination sends signals to the workflows that expire and delete FoundationDB backups, the queue and the turns, and starts
// them.
type Coordination struct {
	// Temporal is the client of the namespace in which they run.
	Temporal client.Client
}

// Register registers the activities with a worker under their wire names.
func (c *Coordination) Register(registry worker.ActivityRegistry) {
	activities.RegisterEffect(registry, contract.SignalFDBExpiryQueue, c.SignalQueue)
	activities.RegisterEffect(registry, contract.StartFDBExpiry, c.StartTurn)
	activities.RegisterEffect(registry, contract.ReportFDBTurn, c.ReportTurn)
}

// SignalQueue signals the request to the queue, which it starts if it does not run.
func (c *Coordination) SignalQueue(ctx context.Context, request contract.FDBQueueRequest) error {
	return c.signalQueue(ctx, request.Cluster, contract.SignalExpiryEntry, request)
}

func (c *Coordination) signalQueue(ctx context.Context, cluster, signal string, payload any) error {
	_, err := c.Temporal.SignalWithStartWorkflow(ctx, contract.FDBExpiryQueueID(cluster), signal, payload,
		client.StartWorkflowOptions{
			TaskQueue:             contract.FDBWorkflowTaskQueue(cluster),
			WorkflowTaskTimeout:   contract.WorkflowTaskTimeout,
			TypedSearchAttributes: contract.KindFDBExpiryQueue.Attributes(cluster, contract.ObjectRef{}),
			StaticSummary:         contract.KindFDBExpiryQueue.SummaryOf(cluster),
		}, contract.KindFDBExpiryQueue.Workflow, contract.FDBExpiryQueueInput{Cluster: cluster})
	if err != nil {
		return fmt.Errorf("signal the queue of expirations: %w", err)
	}
	return nil
}

// StartTurn starts the workflow of a turn. It leaves one alone that runs already: there are never two for one backup. It does not
// start a turn again that ran when this activity was scheduled and has ended since: an earlier attempt may have started it. An
// input that Temporal rejects is not retried.
func (c *Coordination) StartTurn(ctx context.Context, in contract.FDBExpiryInput) error {
	err := c.startTurn(ctx, in)
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) {
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrorFDBQueueInvalid, err)
	}
	return err
}

func (c *Coordination) startTurn(ctx context.Context, in contract.FDBExpiryInput) error {
	options := activities.StartOptions(contract.KindFDBExpiry, in.Cluster, in.Ref)
	done, err := c.turnStarted(ctx, options.ID, in)
	if done || err != nil {
		return err
	}
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	options.StaticSummary = contract.KindFDBExpiry.SummaryOf(fmt.Sprintf("%s: %s", in.Ref, in.Job))
	_, err = c.Temporal.ExecuteWorkflow(ctx, options, contract.KindFDBExpiry.Workflow, in)
	var runs *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &runs) {
		return fmt.Errorf("start the turn of %s: %w", in.Ref, err)
	}
	return nil
}

// turnStarted reports whether the turn runs, or ran when this activity was scheduled. If an earlier turn of the same backup has
// reported its end and is about to close, it returns an error: the activity is retried, but not for long. If that turn does not
// close, the queue finds out and starts this one later.
func (c *Coordination) turnStarted(ctx context.Context, id string, in contract.FDBExpiryInput) (bool, error) {
	described, err := c.Temporal.DescribeWorkflowExecution(ctx, id, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("describe workflow %s: %w", id, err)
	}
	run, info := described.GetWorkflowExecutionInfo(), activity.GetInfo(ctx)
	earlier := run.GetStartTime().AsTime().Unix() < in.Turn
	if coordination.Ended(run.GetStatus()) {
		return !earlier && !run.GetCloseTime().AsTime().Before(info.ScheduledTime), nil
	}
	if earlier && info.Attempt <= turnClosingAttempts {
		return false, fmt.Errorf("an earlier turn of %s is still ending", in.Ref)
	}
	return true, nil
}

// ReportTurn signals the state of a turn to the backup's workflow and to the queue. The backup comes first: after it, the queue
// may forget the turn.
func (c *Coordination) ReportTurn(ctx context.Context, reports contract.FDBTurnReports) error {
	if reports.Result != nil {
		err := activities.SignalObject(ctx, c.Temporal, contract.KindFDBBackup, reports.Cluster, reports.Ref,
			contract.SignalExpiryResult, *reports.Result)
		if err != nil {
			return fmt.Errorf("report how a turn ended: %w", err)
		}
	}
	if reports.Report != nil {
		if err := c.signalQueue(ctx, reports.Cluster, contract.SignalExpiryTurn, *reports.Report); err != nil {
			return err
		}
	}
	if result := reports.Result; result != nil { // once, after both signals
		took := time.Duration(result.At-result.Turn) * time.Second
		metrics.FDBTurnEnded(string(result.Job), string(result.Outcome), took)
	}
	return nil
}
