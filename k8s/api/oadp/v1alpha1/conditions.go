package v1alpha1

// NonAdminPhase is the phase of a tenant's object. The mirrored Velero status, not the phase, says what the Velero object does.
// +kubebuilder:validation:Enum=New;BackingOff;Created;Deleting
type NonAdminPhase string

// Phases of a tenant's object.
const (
	// NonAdminPhaseNew: observed; not validated yet, or accepted and its Velero object not created yet.
	NonAdminPhaseNew NonAdminPhase = "New"
	// NonAdminPhaseBackingOff: not accepted; the Accepted condition says why.
	NonAdminPhaseBackingOff NonAdminPhase = "BackingOff"
	// NonAdminPhaseCreated: its Velero object was created.
	NonAdminPhaseCreated NonAdminPhase = "Created"
	// NonAdminPhaseDeleting: it is being deleted; the Deleting condition says what the deletion waits for.
	NonAdminPhaseDeleting NonAdminPhase = "Deleting"
)

// NonAdminCondition is the type of a condition on a tenant's object.
type NonAdminCondition string

// Condition types. Operators, monitoring rules and scripts may depend on them.
const (
	// Besides these, each of Holdfast's kinds has the conditions of package kstatus.

	// NonAdminConditionAccepted says whether the spec is valid. Its observedGeneration is the generation validated last.
	NonAdminConditionAccepted NonAdminCondition = "Accepted"
	// NonAdminConditionQueued is true once the Velero object exists.
	NonAdminConditionQueued NonAdminCondition = "Queued"
	// NonAdminConditionDeleting is true while deletion is under way or waits for the tenant.
	NonAdminConditionDeleting NonAdminCondition = "Deleting"
	// NonAdminConditionVeleroStalled is true while the object store holds the finished backup and Velero still calls it
	// InProgress; it is absent otherwise.
	NonAdminConditionVeleroStalled NonAdminCondition = "VeleroStalled"
	// NonAdminConditionVerified is the verdict of the newest RestoreDrill of the backup that has one; it is absent as long as none
	// has. Its reasons are those of the drill's own condition.
	NonAdminConditionVerified NonAdminCondition = "Verified"
	// NonAdminConditionFinalized is true once the work after a restore is over, with or without errors: see its reason.
	NonAdminConditionFinalized NonAdminCondition = "Finalized"
	// NonAdminConditionFiltered is true if a restore from a tenant's storage location left out objects of its backup that the
	// location's owner may not create; it is absent otherwise.
	NonAdminConditionFiltered NonAdminCondition = "Filtered"
	// NonAdminConditionVolumesCopied is true once Velero has copied the data of all volumes of a backup or restore. Its message says
	// how much is copied. It is absent where no data of volumes are copied.
	NonAdminConditionVolumesCopied NonAdminCondition = "VolumesCopied"
	// NonAdminConditionClusterAdminApproved says whether an administrator allowed a storage location.
	NonAdminConditionClusterAdminApproved NonAdminCondition = "ClusterAdminApproved"
	// NonAdminConditionSpecUpdateApproved says whether an administrator allowed a change of a storage location.
	NonAdminConditionSpecUpdateApproved NonAdminCondition = "SpecUpdateApproved"
	// NonAdminConditionSecretSynced says whether a storage location's credentials were copied.
	NonAdminConditionSecretSynced NonAdminCondition = "SecretSynced"
	// NonAdminConditionBackupStorageLocationSynced says whether the Velero BackupStorageLocation is up to date.
	NonAdminConditionBackupStorageLocationSynced NonAdminCondition = "BackupStorageLocationSynced"
	// NonAdminConditionProcessed says whether a download request has its URL.
	NonAdminConditionProcessed NonAdminCondition = "Processed"
	// NonAdminConditionNonAdminBackupNotAvailable is true if there is no such backup to download.
	NonAdminConditionNonAdminBackupNotAvailable NonAdminCondition = "NonAdminBackupNotAvailable"
	// NonAdminConditionNonAdminRestoreNotAvailable is true if there is no such restore to download.
	NonAdminConditionNonAdminRestoreNotAvailable NonAdminCondition = "NonAdminRestoreNotAvailable"
	// NonAdminConditionNonAdminBackupStorageLocationNotUsed is true if the backup is in an administrator's location, whose files
	// tenants may not download.
	NonAdminConditionNonAdminBackupStorageLocationNotUsed NonAdminCondition = "NonAdminBackupStorageLocationNotUsed"
)

// Reasons of VolumesCopied. All are Holdfast's own.
const (
	// ReasonCopying: it is not over. False.
	ReasonCopying = "Copying"
	// ReasonCopied: all data are copied. True.
	ReasonCopied = "Copied"
	// ReasonCopyFailed: it is over, and the data of some volumes are not copied. False.
	ReasonCopyFailed = "CopyFailed"
)

// Reasons on a NonAdminBackup.
const (
	ReasonInvalidBackupSpec    = "InvalidBackupSpec"
	ReasonBackupAccepted       = "BackupAccepted"
	ReasonVeleroBackupNotFound = "VeleroBackupNotFound"
	ReasonBackupScheduled      = "BackupScheduled"
	ReasonDeletionPending      = "DeletionPending"
	// ReasonQuotaExceeded is Holdfast's own: the administrator's quota leaves no place. It passes by itself.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonVeleroFinalStatusLost is Holdfast's own; the Non-Admin Controller has no such reason.
	ReasonVeleroFinalStatusLost = "VeleroFinalStatusLost"
	// ReasonWaitingForTurn is Holdfast's own, of condition Queued, on a NonAdminRestore too: Velero is not handed the object yet.
	ReasonWaitingForTurn = "WaitingForTurn"
)

// Reasons on a NonAdminRestore; ReasonDeletionPending is used too.
const (
	ReasonInvalidRestoreSpec    = "InvalidRestoreSpec"
	ReasonRestoreAccepted       = "RestoreAccepted"
	ReasonVeleroRestoreNotFound = "VeleroRestoreNotFound"
	ReasonRestoreScheduled      = "RestoreScheduled"
	// Holdfast's own, of condition Finalized.
	ReasonFinalizing                  = "Finalizing"
	ReasonFinalizationCompleted       = "FinalizationCompleted"
	ReasonFinalizationPartiallyFailed = "FinalizationPartiallyFailed"
	// Holdfast's own, of condition Filtered.
	ReasonNotAllowedFromTenantsLocation = "NotAllowedFromTenantsLocation"
)

// Reasons on a NonAdminBackupStorageLocation and its approval request.
const (
	ReasonBSLSpecValidation              = "BslSpecValidation"
	ReasonBSLSpecApprovalPending         = "BslSpecApprovalPending"
	ReasonBSLSpecApproved                = "BslSpecApproved"
	ReasonBSLSpecRejected                = "BslSpecRejected"
	ReasonBSLSpecInvalid                 = "BslSpecInvalid"
	ReasonBSLSpecUpdateRejected          = "BslSpecUpdateRejected"
	ReasonSecretCreated                  = "SecretCreated"
	ReasonSecretUpdated                  = "SecretUpdated"
	ReasonSecretSyncFailed               = "SecretSyncFailed"
	ReasonBackupStorageLocationCreated   = "BackupStorageLocationCreated"
	ReasonBackupStorageLocationUpdated   = "BackupStorageLocationUpdated"
	ReasonBackupStorageLocationSyncError = "BackupStorageLocationSyncError"
	ReasonDownloadSuccess                = "Success"
	ReasonDownloadError                  = "Error"
	// ReasonDownloadRequested is Holdfast's own: Velero has a request for the URL.
	ReasonDownloadRequested = "Requested"
)
