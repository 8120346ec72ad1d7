package workflows

import (
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/workflows/contract"
)

// Kinds are all kinds of workflows.
func Kinds() []Kind {
	return []Kind{
		backupKind, restoreKind, finalizationKind, downloadKind, locationKind, approvalKind, synchronizationKind, collectionKind,
		fdbBackupKind, fdbThrottleKind, fdbExpiryQueueKind, fdbExpiryKind, fdbRestoreKind, fdbClusterKind, fdbContainerKind,
	}
}

// Register makes every workflow known to a worker, or to a replayer, under its wire name.
func Register(registry worker.WorkflowRegistry, options Options) {
	for _, kind := range Kinds() {
		kind.register(registry, options)
	}
}

// RegisterQueue makes known what a task queue carries.
func RegisterQueue(registry worker.WorkflowRegistry, queue contract.Queue, options Options) {
	for _, kind := range Kinds() {
		if kind.Queue == queue {
			kind.register(registry, options)
		}
	}
}
