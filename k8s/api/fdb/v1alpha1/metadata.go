package v1alpha1

const (
	// FinalizerStop keeps a FoundationDBBackup until its backup is aborted in the database.
	FinalizerStop = "fdb.holdfast.dev/stop"
	// FinalizerDelete keeps a FoundationDBBackup until its data are deleted (spec.expiry.deletionFinalizer).
	FinalizerDelete = "fdb.holdfast.dev/delete-data"
	// FinalizerAbort keeps a FoundationDBRestore until it has ended or is aborted in the database.
	FinalizerAbort = "fdb.holdfast.dev/abort-restore"

	// AnnotationClusterVersion on a FoundationDBBackup is the version that its cluster runs. The watcher writes it, so that an
	// upgrade of the cluster changes the backup object.
	AnnotationClusterVersion = "foundationdb.org/backup-cluster-version"
	// AnnotationAgentsHash on the agents' Deployment is the hash of what was applied, to find drift.
	AnnotationAgentsHash = "fdb.holdfast.dev/agents-hash"
	// LabelBackup on the agents' Deployment and its pods names the FoundationDBBackup.
	LabelBackup = "fdb.holdfast.dev/backup"
	// LabelExpiry on a pod that expires or deletes backups names the FoundationDBBackup. Such a pod has no LabelBackup, because it
	// is no agent.
	LabelExpiry = "fdb.holdfast.dev/expiry"
	// LabelTurn on such a pod is when its turn began, in Unix seconds.
	LabelTurn = "fdb.holdfast.dev/expiry-turn"
	// LabelJob on such a pod is what the turn does (contract.FDBJob).
	LabelJob = "fdb.holdfast.dev/expiry-job"
)
