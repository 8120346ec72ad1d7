package queue

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/connect"
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
	queue := connect.VeleroQueue(t.ClusterID)
	if start {
		return queue.SignalWithStart(ctx, t.Client, contract.SignalTurnNews, news)
	}
	return queue.SignalRunning(ctx, t.Client, contract.SignalTurnNews, news)
}

// Order implements Turns.
func (t *Temporal) Order(ctx context.Context) (order contract.TurnOrder, err error) {
	err = connect.QueryRunning(ctx, t.Client, contract.VeleroQueueID(t.ClusterID), contract.QueryTurnOrder, &order)
	if err != nil {
		return order, fmt.Errorf("query the queue before Velero: %w", err)
	}
	return order, nil
}
