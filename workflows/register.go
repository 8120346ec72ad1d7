package workflows

import (
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/workflows/approval"
	"holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/download"
	"holdfast.dev/holdfast/workflows/drill"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
	"holdfast.dev/holdfast/workflows/fdb/cluster"
	"holdfast.dev/holdfast/workflows/fdb/container"
	fdbdrill "holdfast.dev/holdfast/workflows/fdb/drill"
	"holdfast.dev/holdfast/workflows/fdb/expiry"
	"holdfast.dev/holdfast/workflows/fdb/expiryqueue"
	fdbrestore "holdfast.dev/holdfast/workflows/fdb/restore"
	"holdfast.dev/holdfast/workflows/fdb/throttle"
	"holdfast.dev/holdfast/workflows/finalization"
	"holdfast.dev/holdfast/workflows/gate"
	"holdfast.dev/holdfast/workflows/heartbeat"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/location"
	"holdfast.dev/holdfast/workflows/periodic"
	"holdfast.dev/holdfast/workflows/plan"
	"holdfast.dev/holdfast/workflows/queue"
	"holdfast.dev/holdfast/workflows/restore"
)

// AddsCommands says why workers of the baseline (test/histories) cannot go on with a run that this code has taken further: a
// command that they do not know. Empty if they can. It is a line of the release's notes, since such a release cannot be rolled
// back beneath its open workflows.
const AddsCommands = "an open NonAdminBackup or NonAdminRestore that has had a turn before Velero may give it back by " +
	"return-velero-turn. Earlier workers know neither this command nor the workflow VeleroQueue nor the keys queue and quotas " +
	"of the policy. Before a rollback set queue.maxActive and queue.maxActiveRestores to 0, wait until the queue has ended, " +
	"and remove both keys. With the queue off, the default, nobody has had a turn. Nor do they know the kinds RestoreDrill and " +
	"FoundationDBDrill, the key drills, or record-digests, which a NonAdminBackup runs once it is complete while drills are on: " +
	"before a rollback remove that key, and wait until neither kind has an object and all backups have ended. Terminate the " +
	"workflow ClusterHeartbeat of each cluster after a rollback: earlier workers do not know it either, and no object depends on it"

// AddsByDefault reports whether that also concerns runs under a policy that does not ask for it: then no test rolls back.
const AddsByDefault = false

// Kinds are all kinds of workflows.
func Kinds() []kinds.Kind {
	return []kinds.Kind{
		backup.Kind, restore.Kind, finalization.Kind, download.Kind, location.Kind, approval.Kind,
		periodic.SynchronizationKind, periodic.CollectionKind, periodic.DefaultPlansKind,
		plan.Kind, plan.StartKind, drill.Kind, queue.Kind,
		fdbbackup.Kind, throttle.Kind, expiryqueue.Kind, expiry.Kind, fdbrestore.Kind, fdbdrill.Kind, cluster.Kind, container.Kind,
		gate.Kind, heartbeat.Kind,
	}
}

// Register registers every workflow with a worker, or with a replayer, under its wire name.
func Register(registry worker.WorkflowRegistry, options call.Options) {
	for _, kind := range Kinds() {
		kind.Register(registry, options)
	}
}

// RegisterQueue registers the workflows of one task queue.
func RegisterQueue(registry worker.WorkflowRegistry, queue contract.Queue, options call.Options) {
	for _, kind := range Kinds() {
		if kind.Queue == queue || kind.Queue == contract.QueueEach {
			kind.Register(registry, options)
		}
	}
}
