package signal

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/workflows/contract"
)

// Workflows signals the workflows of tenant objects.
type Workflows interface {
	// SignalWithStart signals the object's workflow, and starts it if it does not run.
	SignalWithStart(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint) error
	// Ensure starts the object's workflow if it does not run, and otherwise leaves it alone.
	Ensure(ctx context.Context, kind contract.Kind, ref contract.ObjectRef) error
	// SignalRunning signals the object's workflow if it runs.
	SignalRunning(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint) error
}

// Temporal implements Workflows with a Temporal client.
type Temporal struct {
	Client    client.Client
	ClusterID string
}

var _ Workflows = (*Temporal)(nil)

// SignalWithStart implements Workflows.
func (w *Temporal) SignalWithStart(
	ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint,
) error {
	return activities.SignalObject(ctx, w.Client, kind, w.ClusterID, ref, contract.SignalChanged, changed)
}

// Ensure implements Workflows.
func (w *Temporal) Ensure(ctx context.Context, kind contract.Kind, ref contract.ObjectRef) error {
	options := activities.StartOptions(kind, w.ClusterID, ref)
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	input := contract.ObjectInput{Cluster: w.ClusterID, Ref: ref}
	if _, err := w.Client.ExecuteWorkflow(ctx, options, kind.Workflow, input); err != nil {
		return fmt.Errorf("start workflow of %s %s: %w", kind.Kubernetes, ref, err)
	}
	return nil
}

// SignalRunning implements Workflows.
func (w *Temporal) SignalRunning(
	ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint,
) error {
	err := w.Client.SignalWorkflow(ctx, contract.WorkflowID(w.ClusterID, kind, ref), "",
		contract.SignalChanged, changed)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("signal workflow of %s %s: %w", kind.Kubernetes, ref, err)
	}
	return nil
}
