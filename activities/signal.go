package activities

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// StartOptions are those of the workflow that serves an object. It is the same, no matter who starts it.
func StartOptions(kind contract.Kind, cluster string, ref contract.ObjectRef) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                    contract.WorkflowID(cluster, kind, ref),
		TaskQueue:             kind.TaskQueue(cluster),
		WorkflowTaskTimeout:   contract.WorkflowTaskTimeout,
		TypedSearchAttributes: kind.Attributes(cluster, ref),
		StaticSummary:         kind.SummaryOf(ref.String()),
		Priority:              ref.Fairness(),
	}
}

// SignalObject signals the workflow that serves an object, and starts it if it does not run.
func SignalObject(
	ctx context.Context, c client.Client, kind contract.Kind, cluster string, ref contract.ObjectRef, signal string, payload any,
) error {
	options := StartOptions(kind, cluster, ref)
	_, err := c.SignalWithStartWorkflow(ctx, options.ID, signal, payload, options, kind.Workflow,
		contract.ObjectInput{Cluster: cluster, Ref: ref})
	if err != nil {
		return fmt.Errorf("signal workflow of %s %s: %w", kind.Kubernetes, ref, err)
	}
	return nil
}
