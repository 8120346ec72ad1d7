package v1alpha1

// Condition messages that tools compare or show. Where a tenant reads the same text as with the Non-Admin Controller,
// scripts written for it keep working.
const (
	MessageBackupAccepted         = "backup accepted"
	MessageBackupScheduled        = "Created Velero Backup object"
	MessageBackupDeletionAccepted = "backup accepted for deletion"
	MessageBackupDeletionPending  = "backup deletion requires setting spec.deleteBackup or spec.forceDeleteBackup " +
		"to true or finalizer removal"
	MessageVeleroBackupNotFound = "NonAdminBackup is finalized and its associated Velero Backup has been removed. " +
		"Please create a new NonAdminBackup to initiate a new backup"
	MessageVeleroStalled = "the object store holds the finished backup, but Velero has not recorded its end; " +
		"an administrator should restart Velero, which then marks the backup Failed: create a new one after that"
	MessageWaitingForTurn = "Velero processes as many as the administrator allows at a time; this one is handed to it when its " +
		"turn comes: see status.queueInfo"
	MessageSyncedBackupNotFound = "related Velero Backup to be synced from does not exist"

	MessageRestoreAccepted         = "restore accepted"
	MessageRestoreScheduled        = "Created Velero Restore object"
	MessageRestoreDeletionAccepted = "restore accepted for deletion"
	// MessageFinalizing is Holdfast's own.
	MessageFinalizing            = "the restore's volumes and workloads are being checked and completed"
	MessageVeleroRestoreNotFound = "NonAdminRestore is finalized and its associated Velero Restore has been removed. " +
		"Please create a new NonAdminRestore to initiate a new Restore"
	MessageVeleroRestoreStalled = "the object store holds the results of the restore, but Velero has not recorded its end; " +
		"an administrator should restart Velero, which then marks the restore Failed: create a new one after that"

	MessageBSLSpecValid       = "NonAdminBackupStorageLocation spec validation successful"
	MessageBSLApprovalPending = "NonAdminBackupStorageLocationRequest approval pending"
	MessageBSLApproved        = "NonAdminBackupStorageLocationRequest approval decision set to Approve"
	MessageBSLRejected        = "NonAdminBackupStorageLocationRequest approval decision set to Reject"
	// Holdfast's own: the Non-Admin Controller approves without asking, and refuses every change.
	MessageBSLApprovalNotRequired = "the administrator's policy requires no approval"
	MessageBSLUpdateRejected      = "the change of the spec was rejected; the location approved before stays in use"
	MessageSecretCreated          = "Secret successfully created in the OADP namespace"
	MessageSecretUpdated          = "Secret successfully updated in the OADP namespace"
	MessageSecretSyncFailed       = "Failed to sync secret to OADP namespace"
	MessageBSLCreated             = "BackupStorageLocation successfully created in the OADP namespace"
	MessageBSLUpdated             = "BackupStorageLocation successfully updated in the OADP namespace"
	MessageBSLSyncError           = "BackupStorageLocation failure during sync"
	MessageBackupUnavailable      = "cannot get nonadminbackup"
	MessageRestoreUnavailable     = "cannot get nonadminrestore"
	MessageLocationNotUsed        = "backup does not use nonadminbackupstoragelocation, recreate nadr to process"
	// Holdfast's own.
	MessageDownloadRequested = "waits for Velero to sign a URL"
)
