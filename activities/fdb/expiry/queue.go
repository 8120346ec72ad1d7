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

// Coordination speaks with the workflows that expire and delete FoundationDB backups: the queue and the turns.
type Coordination struct {
	// Temporal is the client of the namespace that they run in.
	Temporal client.Client
}

// Register makes the activities known to a worker under their wire names.
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
		return fmt.Errorf("tell the queue of expirations: %w", err)
	}
	return nil
}

// StartTurn starts the workflow of a turn. One that runs already is left alone: there are never two for one backup. One that ran
// when this was asked for, and has ended since, is not started again: an earlier attempt may have started it. What Temporal can
// never take is not asked again.
func (c *Coordination) StartTurn(ctx context.Context, in contract.FDBExpiryInput) error {
	err := c.startTurn(ctx, in)
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) {
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrorFDBQueueInvalid, err)
	}
	return err
}

func (c *Coordination) startTurn(ctx context.Context, in contract.FDBExpiryInput) error {
	id := contract.WorkflowID(in.Cluster, contract.KindFDBExpiry, in.Ref)
	done, err := c.turnStarted(ctx, id, in)
	if done || err != nil {
		return err
	}
	_, err = c.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       id,
		TaskQueue:                contract.FDBWorkflowTaskQueue(in.Cluster),
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowTaskTimeout:      contract.WorkflowTaskTimeout,
		TypedSearchAttributes:    contract.KindFDBExpiry.Attributes(in.Cluster, in.Ref),
		StaticSummary:            contract.KindFDBExpiry.SummaryOf(fmt.Sprintf("%s: %s", in.Ref, in.Job)),
	}, contract.KindFDBExpiry.Workflow, in)
	var runs *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &runs) {
		return fmt.Errorf("start the turn of %s: %w", in.Ref, err)
	}
	return nil
}

// turnStarted reports whether the turn runs, or ran when its start was asked for. An earlier turn of the same backup has told its
// end and is about to close: it is waited for, but not for long. If it goes on the queue finds out, and starts this one later.
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

// ReportTurn tells the backup's workflow and the queue how far a turn is. The backup hears of it before the queue may forget it.
func (c *Coordination) ReportTurn(ctx context.Context, tidings contract.FDBTurnReports) error {
	if tidings.Result != nil {
		_, err := c.Temporal.SignalWithStartWorkflow(ctx, contract.WorkflowID(tidings.Cluster, contract.KindFDBBackup, tidings.Ref),
			contract.SignalExpiryResult, *tidings.Result,
			client.StartWorkflowOptions{
				TaskQueue:             contract.FDBWorkflowTaskQueue(tidings.Cluster),
				WorkflowTaskTimeout:   contract.WorkflowTaskTimeout,
				TypedSearchAttributes: contract.KindFDBBackup.Attributes(tidings.Cluster, tidings.Ref),
				StaticSummary:         contract.KindFDBBackup.SummaryOf(tidings.Ref.String()),
			}, contract.KindFDBBackup.Workflow, contract.ObjectInput{Cluster: tidings.Cluster, Ref: tidings.Ref})
		if err != nil {
			return fmt.Errorf("tell the workflow of %s how its turn ended: %w", tidings.Ref, err)
		}
	}
	if tidings.Report != nil {
		if err := c.signalQueue(ctx, tidings.Cluster, contract.SignalExpiryTurn, *tidings.Report); err != nil {
			return err
		}
	}
	if result := tidings.Result; result != nil { // once, when both have been told
		took := time.Duration(result.At-result.Turn) * time.Second
		metrics.FDBTurnEnded(string(result.Job), string(result.Outcome), took)
	}
	return nil
}
