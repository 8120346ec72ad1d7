package v1alpha1

const (
	// FinalizerStop keeps a FoundationDBBackup until its backup is aborted in the database.
	FinalizerStop = "fdb.holdfast.dev/stop"

	// AnnotationClusterVersion on a FoundationDBBackup is the version that its cluster runs. The watcher writes it, so that a
	// cluster's upgrade is an event of its backups (seed "Configure Backup Agents").
	AnnotationClusterVersion = "foundationdb.org/backup-cluster-version"
	// AnnotationAgentsHash on the agents' Deployment is the hash of what was applied, for finding drift.
	AnnotationAgentsHash = "fdb.holdfast.dev/agents-hash"
	// LabelBackup on the agents' Deployment and its pods names the FoundationDBBackup.
	LabelBackup = "fdb.holdfast.dev/backup"
)
