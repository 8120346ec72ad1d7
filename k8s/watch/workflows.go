package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// workflowTaskTimeout is what the kill of a worker costs a workflow.
const workflowTaskTimeout = 5 * time.Second

// Workflows signals the workflows of tenant objects.
type Workflows interface {
	// SignalWithStart tells the object's workflow to look, and starts it if it does not run.
	SignalWithStart(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed) error
	// SignalRunning tells the object's workflow to look if it runs.
	SignalRunning(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed) error
}

// TemporalWorkflows implements Workflows with a Temporal client.
type TemporalWorkflows struct {
	Client    client.Client
	ClusterID string
}

var _ Workflows = (*TemporalWorkflows)(nil)

// kinds says which workflow serves which kind.
var kinds = map[contract.Kind]struct {
	workflow, kubernetesKind, summary string
	input                             func(cluster string, ref contract.ObjectRef) any
}{
	contract.KindBackup: {
		workflow: contract.WorkflowBackup, kubernetesKind: contract.KubernetesKindBackup, summary: "Backup of",
		input: func(cluster string, ref contract.ObjectRef) any {
			return contract.BackupInput{Cluster: cluster, Ref: ref}
		},
	},
}

// SignalWithStart implements Workflows.
func (w *TemporalWorkflows) SignalWithStart(
	ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed,
) error {
	served := kinds[kind]
	options := client.StartWorkflowOptions{
		TaskQueue:             contract.TaskQueue(w.ClusterID),
		WorkflowTaskTimeout:   workflowTaskTimeout,
		TypedSearchAttributes: contract.StartAttributes(w.ClusterID, served.kubernetesKind, ref),
		StaticSummary:         fmt.Sprintf("%s %s", served.summary, ref),
	}
	_, err := w.Client.SignalWithStartWorkflow(ctx, contract.WorkflowID(w.ClusterID, kind, ref),
		contract.SignalChanged, changed,
		options, served.workflow, served.input(w.ClusterID, ref))
	if err != nil {
		return fmt.Errorf("signal workflow of %s %s: %w", served.kubernetesKind, ref, err)
	}
	return nil
}

// SignalRunning implements Workflows.
func (w *TemporalWorkflows) SignalRunning(
	ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed,
) error {
	err := w.Client.SignalWorkflow(ctx, contract.WorkflowID(w.ClusterID, kind, ref), "",
		contract.SignalChanged, changed)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("signal workflow of %s %s: %w", kinds[kind].kubernetesKind, ref, err)
	}
	return nil
}
