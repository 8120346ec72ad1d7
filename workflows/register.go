package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// Register makes every workflow known to a worker, or to a replayer, under its wire name.
func Register(registry worker.WorkflowRegistry, options Options) {
	RegisterVelero(registry, options)
	RegisterFDB(registry, options)
	RegisterShared(registry)
}

// RegisterVelero makes those of Velero's half known: what contract.TaskQueue carries.
func RegisterVelero(registry worker.WorkflowRegistry, options Options) {
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.BackupInput) error { return NonAdminBackup(ctx, in, options) },
		workflow.RegisterOptions{Name: contract.WorkflowBackup})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.RestoreInput) error { return NonAdminRestore(ctx, in, options) },
		workflow.RegisterOptions{Name: contract.WorkflowRestore})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.FinalizationInput) (contract.FinalizationResult, error) {
			return RestoreFinalization(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowFinalization})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.DownloadInput) error {
			return NonAdminDownloadRequest(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowDownload})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.LocationInput) error {
			return NonAdminBackupStorageLocation(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowLocation})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.ApprovalInput) error {
			return StorageLocationApproval(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowApproval})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.SynchronizationInput) (contract.SynchronizationResult, error) {
			return BackupSynchronization(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowSynchronization})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.CollectionInput) (contract.CollectionResult, error) {
			return GarbageCollection(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowCollection})
}

// RegisterFDB makes those of FoundationDB known: what contract.FDBWorkflowTaskQueue carries.
func RegisterFDB(registry worker.WorkflowRegistry, options Options) {
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.FDBBackupInput) error {
			return FoundationDBBackup(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowFDBBackup})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.FDBThrottleInput) error {
			return FDBSnapshotThrottle(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowFDBThrottle})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.FDBExpiryQueueInput) error {
			return FDBExpiryQueue(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowFDBExpiryQueue})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.FDBRestoreInput) error {
			return FoundationDBRestore(ctx, in, options)
		},
		workflow.RegisterOptions{Name: contract.WorkflowFDBRestore})
	registry.RegisterWorkflowWithOptions(
		func(ctx workflow.Context, in contract.FDBExpiryInput) error { return FDBExpiry(ctx, in, options) },
		workflow.RegisterOptions{Name: contract.WorkflowFDBExpiry})
}

// RegisterShared makes known what contract.SharedTaskQueue carries: the owners of FoundationDB clusters and the guards of
// containers.
func RegisterShared(registry worker.WorkflowRegistry) {
	registry.RegisterWorkflowWithOptions(FDBCluster, workflow.RegisterOptions{Name: contract.WorkflowFDBCluster})
	registry.RegisterWorkflowWithOptions(FDBContainer, workflow.RegisterOptions{Name: contract.WorkflowFDBContainer})
}
