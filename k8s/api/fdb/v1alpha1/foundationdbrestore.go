package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() {
	Requests = append(Requests, ResourceFoundationDBRestores)
	SchemeBuilder.Register(known(&FoundationDBRestore{}, &FoundationDBRestoreList{}))
}

// FoundationDBRestore is a single restore of a backup into a FoundationDB cluster of the same namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=foundationdbrestores,shortName=fdbr,categories=holdfast
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.state"
// +kubebuilder:printcolumn:name="Percent",type="integer",JSONPath=".status.progress.percentDone"
// +kubebuilder:printcolumn:name="Restored-Version",type="integer",JSONPath=".status.restoredVersion"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name may have 63 characters at most"
type FoundationDBRestore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired restore.
	// +required
	Spec FoundationDBRestoreSpec `json:"spec"`
	// status is the last observed state of the restore. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status FoundationDBRestoreStatus `json:"status,omitempty"`
}

// FoundationDBRestoreSpec is the desired restore. It is immutable, except that restoreState can be changed from Running to
// Stopped.
//
// +kubebuilder:validation:XValidation:rule="has(self.backupURL) != has(self.backupName)",message="give one of backupURL and backupName"
// +kubebuilder:validation:XValidation:rule="!has(self.timestamp) || has(self.sourceClusterName)",message="timestamp needs sourceClusterName: only the cluster that was backed up knows which version it had at a time"
// +kubebuilder:validation:XValidation:rule="has(self.backupName) || has(self.credentials)",message="backupURL needs credentials, the Secret with the account of the object store"
// +kubebuilder:validation:XValidation:rule="has(self.backupURL) == has(oldSelf.backupURL) && (!has(self.backupURL) || self.backupURL == oldSelf.backupURL)",message="backupURL cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="has(self.backupName) == has(oldSelf.backupName) && (!has(self.backupName) || self.backupName == oldSelf.backupName)",message="backupName cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="has(self.credentials) == has(oldSelf.credentials) && (!has(self.credentials) || self.credentials == oldSelf.credentials)",message="credentials cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="self.destinationClusterName == oldSelf.destinationClusterName",message="destinationClusterName cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="has(self.sourceClusterName) == has(oldSelf.sourceClusterName) && (!has(self.sourceClusterName) || self.sourceClusterName == oldSelf.sourceClusterName)",message="sourceClusterName cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="has(self.keyRanges) == has(oldSelf.keyRanges) && (!has(self.keyRanges) || self.keyRanges == oldSelf.keyRanges)",message="keyRanges cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="(has(self.version) ? self.version : 0) == (has(oldSelf.version) ? oldSelf.version : 0)",message="version cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="has(self.timestamp) == has(oldSelf.timestamp) && (!has(self.timestamp) || self.timestamp == oldSelf.timestamp)",message="timestamp cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="has(self.tag) == has(oldSelf.tag) && (!has(self.tag) || self.tag == oldSelf.tag)",message="tag cannot be changed: create another FoundationDBRestore"
// +kubebuilder:validation:XValidation:rule="self.restoreState == oldSelf.restoreState || self.restoreState == 'Stopped'",message="restoreState can only go from Running to Stopped: create another FoundationDBRestore to restore again"
type FoundationDBRestoreSpec struct {
	// backupURL is the URL of the backup to restore, without a secret, as status.backups of a FoundationDBBackup shows it. Exactly
	// one of backupURL and backupName is required; backupURL also needs credentials. At most 4096 characters. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^:]+://[^@]*:[^@]*@')",message="backupURL must not hold a secret: it belongs in the credentials file"
	BackupURL string `json:"backupURL,omitempty"`

	// backupName is the name of a FoundationDBBackup of the same namespace, whose newest restorable backup is restored. Exactly one
	// of backupURL and backupName is required. At most 63 characters. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	BackupName string `json:"backupName,omitempty"`

	// credentials references the Secret with the accounts of the object store. Defaults to that of the FoundationDBBackup in
	// backupName. The backup agents of the destination need the account, too. Immutable.
	// +optional
	Credentials *CredentialsReference `json:"credentials,omitempty"`

	// destinationClusterName is the name of the FoundationDBCluster, in the same namespace, that is restored into. The ranges to
	// restore must be empty there, and backup agents must run for it. At most 253 characters. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DestinationClusterName string `json:"destinationClusterName"`

	// sourceClusterName is the name of the FoundationDBCluster, in the same namespace, that was backed up. Required with timestamp,
	// which only that cluster can convert to a version. At most 253 characters. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SourceClusterName string `json:"sourceClusterName,omitempty"`

	// restoreState is the desired state of the restore: Running or Stopped. Defaults to Running. Stopped aborts the restore, after
	// which the destination holds partial data; it cannot be changed back.
	// +optional
	// +kubebuilder:default=Running
	RestoreState RestoreState `json:"restoreState,omitempty"`

	// keyRanges are the ranges of keys to restore. Defaults to all that the backup holds. At most 100 ranges. Immutable.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	KeyRanges []KeyRange `json:"keyRanges,omitempty"`

	// version is the version of the database to restore to. Defaults to the latest restorable version. Takes precedence over
	// timestamp. At least 1. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Version int64 `json:"version,omitempty"`

	// timestamp is the time to restore to, exact to seconds at best. It needs sourceClusterName. Defaults to the latest restorable
	// version. Immutable.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`

	// tag is the beginning of the FoundationDB restore tag, which names the restore within the destination; a part of the UID of the
	// FoundationDBRestore is appended. Defaults to the name of the FoundationDBRestore. Letters, digits, _ and -; at most
	// 48 characters. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9_-]*$')",message="tag may hold only letters, digits, _ and -"
	Tag string `json:"tag,omitempty"`
}

// RestoreState is a desired state of a restore.
//
// +kubebuilder:validation:Enum=Running;Stopped
type RestoreState string

// Desired states of a restore.
const (
	// RestoreStateRunning starts the restore.
	RestoreStateRunning RestoreState = "Running"
	// RestoreStateStopped aborts the restore.
	RestoreStateStopped RestoreState = "Stopped"
)

// FoundationDBRestoreStatus is the last observed state of a FoundationDBRestore.
type FoundationDBRestoreStatus struct {
	// observedGeneration is the metadata.generation that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state is the observed state of the restore: Pending, Queued, Starting, Running, Finalizing, Completed, Aborted, Failed or
	// Unknown. Completed, Aborted and Failed are final.
	// +optional
	State ObservedRestoreState `json:"state,omitempty"`

	// conditions are the latest observations of the restore. Ready is True once everything is restored and verified.
	// IncorrectRestoreState and MisconfiguredRestore are present, with status True, only while they hold.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// plan is what is restored. It is set before the restore is started, and does not change.
	// +optional
	Plan *RestorePlan `json:"plan,omitempty"`

	// progress is the progress of the restore.
	// +optional
	Progress *RestoreProgress `json:"progress,omitempty"`

	// restoredVersion is the version of the database that was restored. It is set once the restore is completed and verified.
	// +optional
	RestoredVersion int64 `json:"restoredVersion,omitempty"`

	// finalization lists the tasks that verify the restore once FoundationDB has completed it.
	// +optional
	// +listType=atomic
	Finalization []RestoreTask `json:"finalization,omitempty"`
}

// ObservedRestoreState is a state of a restore. Between Pending and the end it is FoundationDB's, which spells it in lower case.
//
// +kubebuilder:validation:Enum=Pending;Queued;Starting;Running;Finalizing;Completed;Aborted;Failed;Unknown
type ObservedRestoreState string

// Observed states of a restore.
const (
	// RestorePending: not started yet; the conditions say why.
	RestorePending ObservedRestoreState = "Pending"
	// RestoreQueued: started; no backup agent has begun.
	RestoreQueued ObservedRestoreState = "Queued"
	// RestoreStarting: backup agents prepare it.
	RestoreStarting ObservedRestoreState = "Starting"
	// RestoreRunning: backup agents write the data.
	RestoreRunning ObservedRestoreState = "Running"
	// RestoreFinalizing: FoundationDB has completed it; the result is being verified.
	RestoreFinalizing ObservedRestoreState = "Finalizing"
	// RestoreCompleted: everything is restored and verified. Final.
	RestoreCompleted ObservedRestoreState = "Completed"
	// RestoreAborted: aborted, as the spec says or by somebody else, or stopped before its start. Final.
	RestoreAborted ObservedRestoreState = "Aborted"
	// RestoreFailed: the verification has found an error. Final.
	RestoreFailed ObservedRestoreState = "Failed"
	// RestoreUnknown: started; FoundationDB reports a state that this release does not know.
	RestoreUnknown ObservedRestoreState = "Unknown"
)

// ObservedRestoreStates returns all of them.
func ObservedRestoreStates() []ObservedRestoreState {
	return []ObservedRestoreState{
		RestorePending, RestoreQueued, RestoreStarting, RestoreRunning, RestoreFinalizing, RestoreCompleted, RestoreAborted,
		RestoreFailed, RestoreUnknown,
	}
}

// Final reports whether the state is the last one.
func (s ObservedRestoreState) Final() bool {
	return s == RestoreCompleted || s == RestoreAborted || s == RestoreFailed
}

// RestorePlan is what is restored.
type RestorePlan struct {
	// tag is the FoundationDB restore tag, which names the restore within the destination.
	Tag string `json:"tag"`
	// url is the URL of the backup that is restored, without a secret.
	URL string `json:"url"`
	// version is the version of the database that is restored to.
	Version int64 `json:"version"`
	// timestamp is FoundationDB's estimate of the time of version.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`
	// destination identifies the database that is restored into, as description:id of its cluster file.
	Destination string `json:"destination"`
}

// RestoreProgress is the progress of a restore.
type RestoreProgress struct {
	// percentDone is the share of the backup's blocks that are restored, in percent, between 0 and 100. It can decrease at first,
	// while FoundationDB still finds blocks.
	PercentDone int32 `json:"percentDone"`
	// bytesWritten is the amount of data written to the destination, in bytes.
	// +optional
	BytesWritten int64 `json:"bytesWritten,omitempty"`
}

// RestoreTaskName is the name of a task of the finalization. The API server accepts any, so that a newer release can add tasks.
type RestoreTaskName string

// Tasks of the finalization.
const (
	// RestoreTaskDatabaseUnlocked verifies that the destination is unlocked.
	RestoreTaskDatabaseUnlocked RestoreTaskName = "DatabaseUnlocked"
	// RestoreTaskRestoredVersion verifies that the planned version is the one that was restored.
	RestoreTaskRestoredVersion RestoreTaskName = "RestoredVersion"
)

// RestoreTaskPhase is the phase of a task of the finalization.
//
// +kubebuilder:validation:Enum=InProgress;Completed;Failed
type RestoreTaskPhase string

// Phases of a task.
const (
	// RestoreTaskInProgress: it has not ended.
	RestoreTaskInProgress RestoreTaskPhase = "InProgress"
	// RestoreTaskCompleted: it has found no error.
	RestoreTaskCompleted RestoreTaskPhase = "Completed"
	// RestoreTaskFailed: it has found errors, or could not verify in time.
	RestoreTaskFailed RestoreTaskPhase = "Failed"
)

// RestoreTask is one task of the finalization.
type RestoreTask struct {
	// name is the name of the task: DatabaseUnlocked or RestoredVersion.
	Name RestoreTaskName `json:"name"`
	// phase is the phase of the task: InProgress, Completed or Failed.
	Phase RestoreTaskPhase `json:"phase"`
	// errors are what the task found to be wrong.
	// +optional
	// +listType=atomic
	Errors []string `json:"errors,omitempty"`
}

// FoundationDBRestoreList is a list of FoundationDBRestores.
//
// +kubebuilder:object:root=true
type FoundationDBRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FoundationDBRestore `json:"items"`
}
