package v1alpha1

// Types of the conditions of a FoundationDBBackup. The cause is in the reason and the message.
const (
	// ConditionIncorrectDeployment: the agents' Deployment is missing, is not ours or is not as the spec says.
	ConditionIncorrectDeployment = "IncorrectDeployment"
	// ConditionDeploymentRollingOut: agents are being replaced, or not all are ready.
	ConditionDeploymentRollingOut = "DeploymentRollingOut"
	// ConditionIncorrectBackupState: the backup is not in the state that the spec requests.
	ConditionIncorrectBackupState = "IncorrectBackupState"
	// ConditionMisconfiguredBackup: the backup's parameters differ from the spec, or the spec cannot be carried out.
	ConditionMisconfiguredBackup = "MisconfiguredBackup"
)

// Reasons of IncorrectDeployment.
const (
	ReasonDeploymentMissing = "Missing"
	ReasonDeploymentDiffers = "Differs"
	ReasonDeploymentNotOurs = "NotOurs"
	ReasonTemplateInvalid   = "TemplateInvalid"
	ReasonDeploymentRefused = "Refused"
)

// ReasonAgentsNotReady is the reason of DeploymentRollingOut.
const ReasonAgentsNotReady = "AgentsNotReady"

// Reasons of IncorrectBackupState.
const (
	ReasonNotRunning         = "NotRunning"
	ReasonNotStopped         = "NotStopped"
	ReasonNotPaused          = "NotPaused"
	ReasonNotResumed         = "NotResumed"
	ReasonWaitingForSlot     = "WaitingForInitialSnapshotSlot"
	ReasonWaitingForAgents   = "WaitingForAgents"
	ReasonInitialSnapshot    = "InitialSnapshot"
	ReasonSnapshotStalled    = "InitialSnapshotStalled"
	ReasonRestarting         = "Restarting"
	ReasonPauseDisagreement  = "PauseDisagreement"
	ReasonTagTaken           = "TagTaken"
	ReasonToolFailing        = "ToolFailing"
	ReasonLastStartInFuture  = "LastStartInFuture"
	ReasonClusterUnreachable = "ClusterUnreachable"
	ReasonStateUnknown       = "StateUnknown"
	ReasonNoWorker           = "NoWorker"
	ReasonDataMissing        = "DataMissing"
	ReasonExpiryFailing      = "ExpiryFailing"
)

// Reasons of MisconfiguredBackup.
const (
	ReasonParametersDiffer   = "ParametersDiffer"
	ReasonClusterMissing     = "ClusterMissing"
	ReasonClusterNotReady    = "ClusterNotReady"
	ReasonSecretMissing      = "SecretMissing"
	ReasonCredentialsInvalid = "CredentialsInvalid"
	ReasonDestinationInvalid = "DestinationInvalid"
	ReasonKeyRangesInvalid   = "KeyRangesInvalid"
	ReasonContainerUsed      = "ContainerUsed"
	ReasonToolsMissing       = "ToolsMissing"
	ReasonTooManyBackups     = "TooManyBackups"
)

// Types of the conditions of a FoundationDBRestore. The cause is in the reason and the message.
const (
	// ConditionIncorrectRestoreState: the restore is not in the state that the spec requests, or has not ended yet.
	ConditionIncorrectRestoreState = "IncorrectRestoreState"
	// ConditionMisconfiguredRestore: the spec cannot be carried out.
	ConditionMisconfiguredRestore = "MisconfiguredRestore"
)

// Reasons of IncorrectRestoreState. ClusterUnreachable, StateUnknown, NoWorker, ToolFailing and DataMissing are those of a
// backup, too.
const (
	ReasonNotStarted          = "NotStarted"
	ReasonRestoring           = "Restoring"
	ReasonNotAborted          = "NotAborted"
	ReasonAborted             = "Aborted"
	ReasonNoProgress          = "NoProgress"
	ReasonAgentsPaused        = "AgentsPaused"
	ReasonNoAgents            = "NoAgents"
	ReasonDatabaseLocked      = "DatabaseLocked"
	ReasonDatabaseNotEmpty    = "DestinationNotEmpty"
	ReasonDatabaseChanged     = "DestinationChanged"
	ReasonDataBusy            = "DataBusy"
	ReasonFinalizationFailing = "FinalizationFailing"
)

// Reasons of MisconfiguredRestore, besides those of a backup.
const (
	ReasonBackupMissing = "BackupMissing"
	ReasonURLInvalid    = "URLInvalid"
	ReasonNotRestorable = "NotRestorable"
	ReasonSourceMissing = "SourceClusterMissing"
)
