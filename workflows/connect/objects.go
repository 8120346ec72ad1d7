package connect

import (
	"context"

	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// Workflows signals the workflows that serve the objects of a Kubernetes cluster that these have changed.
type Workflows interface {
	// SignalWithStart signals the object's workflow, and starts it if it does not run.
	SignalWithStart(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint) error
	// Ensure starts the object's workflow if it does not run, and otherwise leaves it alone.
	Ensure(ctx context.Context, kind contract.Kind, ref contract.ObjectRef) error
	// SignalRunning signals the object's workflow if it runs.
	SignalRunning(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint) error
}

// Cluster implements Workflows for the cluster of that ID.
type Cluster struct {
	Client    client.Client
	ClusterID string
}

var _ Workflows = (*Cluster)(nil)

// SignalWithStart implements Workflows.
func (c *Cluster) SignalWithStart(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint) error {
	return ForObject(kind, c.ClusterID, ref).SignalWithStart(ctx, c.Client, contract.SignalChanged, changed)
}

// Ensure implements Workflows.
func (c *Cluster) Ensure(ctx context.Context, kind contract.Kind, ref contract.ObjectRef) error {
	return ForObject(kind, c.ClusterID, ref).Ensure(ctx, c.Client)
}

// SignalRunning implements Workflows.
func (c *Cluster) SignalRunning(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint) error {
	return ForObject(kind, c.ClusterID, ref).SignalRunning(ctx, c.Client, contract.SignalChanged, changed)
}
