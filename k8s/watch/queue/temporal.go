package queue

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// Temporal implements Turns with a Temporal client.
type Temporal struct {
	Client    client.Client
	ClusterID string
}

var _ Turns = (*Temporal)(nil)

// Signal implements Turns.
func (t *Temporal) Signal(ctx context.Context, news contract.TurnNews, start bool) error {
	id, kind := contract.VeleroQueueID(t.ClusterID), contract.KindVeleroQueue
	if !start {
		err := t.Client.SignalWorkflow(ctx, id, "", contract.SignalTurnNews, news)
		if missing(err) {
			return nil
		}
		return wrapped(err)
	}
	_, err := t.Client.SignalWithStartWorkflow(ctx, id, contract.SignalTurnNews, news, client.StartWorkflowOptions{
		TaskQueue:             kind.TaskQueue(t.ClusterID),
		WorkflowTaskTimeout:   contract.WorkflowTaskTimeout,
		TypedSearchAttributes: kind.Attributes(t.ClusterID, contract.ObjectRef{}),
		StaticSummary:         kind.SummaryOf(t.ClusterID),
	}, kind.Workflow, contract.VeleroQueueInput{Cluster: t.ClusterID})
	return wrapped(err)
}

// Order implements Turns.
func (t *Temporal) Order(ctx context.Context) (order contract.TurnOrder, err error) {
	answer, err := t.Client.QueryWorkflowWithOptions(ctx, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: contract.VeleroQueueID(t.ClusterID), QueryType: contract.QueryTurnOrder,
		QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_OPEN,
	})
	if missing(err) || (err == nil && answer.QueryRejected != nil) {
		return order, ErrNotRunning
	}
	if err == nil {
		err = answer.QueryResult.Get(&order)
	}
	if err != nil {
		return order, fmt.Errorf("query the queue before Velero: %w", err)
	}
	return order, nil
}

func missing(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

func wrapped(err error) error {
	if err != nil {
		return fmt.Errorf("signal the queue before Velero: %w", err)
	}
	return nil
}
