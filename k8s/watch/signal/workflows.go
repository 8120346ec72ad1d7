package signal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// WorkflowTaskTimeout is what the kill of a worker costs a workflow.
const WorkflowTaskTimeout = 5 * time.Second

// Workflows signals the workflows of tenant objects.
type Workflows interface {
	// SignalWithStart tells the object's workflow to look, and starts it if it does not run.
	SignalWithStart(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed) error
	// Ensure starts the object's workflow if it does not run, and otherwise leaves it alone.
	Ensure(ctx context.Context, kind contract.Kind, ref contract.ObjectRef) error
	// SignalRunning tells the object's workflow to look if it runs.
	SignalRunning(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed) error
}

// Temporal implements Workflows with a Temporal client.
type Temporal struct {
	Client    client.Client
	ClusterID string
}

var _ Workflows = (*Temporal)(nil)

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
	contract.KindRestore: {
		workflow: contract.WorkflowRestore, kubernetesKind: contract.KubernetesKindRestore, summary: "Restore",
		input: func(cluster string, ref contract.ObjectRef) any {
			return contract.RestoreInput{Cluster: cluster, Ref: ref}
		},
	},
	contract.KindDownload: {
		workflow: contract.WorkflowDownload, kubernetesKind: contract.KubernetesKindDownload, summary: "Download request",
		input: func(cluster string, ref contract.ObjectRef) any {
			return contract.DownloadInput{Cluster: cluster, Ref: ref}
		},
	},
	contract.KindLocation: {
		workflow: contract.WorkflowLocation, kubernetesKind: contract.KubernetesKindLocation, summary: "Storage location",
		input: func(cluster string, ref contract.ObjectRef) any {
			return contract.LocationInput{Cluster: cluster, Ref: ref}
		},
	},
	contract.KindFDBBackup: {
		workflow: contract.WorkflowFDBBackup, kubernetesKind: contract.KubernetesKindFDBBackup, summary: "FoundationDB backup",
		input: func(cluster string, ref contract.ObjectRef) any {
			return contract.FDBBackupInput{Cluster: cluster, Ref: ref}
		},
	},
	contract.KindFDBRestore: {
		workflow: contract.WorkflowFDBRestore, kubernetesKind: contract.KubernetesKindFDBRestore, summary: "FoundationDB restore",
		input: func(cluster string, ref contract.ObjectRef) any {
			return contract.FDBRestoreInput{Cluster: cluster, Ref: ref}
		},
	},
	// Started only by the queue of expirations, on its turn: here it is signalled while it runs.
	contract.KindFDBExpiry: {
		workflow: contract.WorkflowFDBExpiry, kubernetesKind: contract.KubernetesKindFDBBackup, summary: "Expiration of",
	},
	contract.KindApproval: {
		workflow: contract.WorkflowApproval, kubernetesKind: contract.KubernetesKindApproval,
		summary: "Approval of storage location",
		input: func(cluster string, ref contract.ObjectRef) any {
			return contract.ApprovalInput{Cluster: cluster, Ref: ref}
		},
	},
}

// SignalWithStart implements Workflows.
func (w *Temporal) SignalWithStart(
	ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed,
) error {
	served := kinds[kind]
	options := w.options(kind, ref)
	_, err := w.Client.SignalWithStartWorkflow(ctx, contract.WorkflowID(w.ClusterID, kind, ref),
		contract.SignalChanged, changed,
		options, served.workflow, served.input(w.ClusterID, ref))
	if err != nil {
		return fmt.Errorf("signal workflow of %s %s: %w", served.kubernetesKind, ref, err)
	}
	return nil
}

func (w *Temporal) options(kind contract.Kind, ref contract.ObjectRef) client.StartWorkflowOptions {
	served := kinds[kind]
	return client.StartWorkflowOptions{
		TaskQueue:             kind.TaskQueue(w.ClusterID),
		WorkflowTaskTimeout:   WorkflowTaskTimeout,
		TypedSearchAttributes: contract.StartAttributes(w.ClusterID, served.kubernetesKind, ref),
		StaticSummary:         fmt.Sprintf("%s %s", served.summary, ref),
	}
}

// Ensure implements Workflows.
func (w *Temporal) Ensure(ctx context.Context, kind contract.Kind, ref contract.ObjectRef) error {
	served := kinds[kind]
	options := w.options(kind, ref)
	options.ID = contract.WorkflowID(w.ClusterID, kind, ref)
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	if _, err := w.Client.ExecuteWorkflow(ctx, options, served.workflow, served.input(w.ClusterID, ref)); err != nil {
		return fmt.Errorf("start workflow of %s %s: %w", served.kubernetesKind, ref, err)
	}
	return nil
}

// SignalRunning implements Workflows.
func (w *Temporal) SignalRunning(
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
