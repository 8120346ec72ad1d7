package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FoundationDBRestore restores a backup into a FoundationDB cluster of the same namespace, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=foundationdbrestores,shortName=fdbr
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.state"
// +kubebuilder:printcolumn:name="Percent",type="integer",JSONPath=".status.progress.percentDone"
// +kubebuilder:printcolumn:name="Restored-Version",type="integer",JSONPath=".status.restoredVersion"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name may have 63 characters at most"
type FoundationDBRestore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec FoundationDBRestoreSpec `json:"spec"`
	// status is what was found.
	// +optional
	Status FoundationDBRestoreStatus `json:"status,omitempty"`
}

// FoundationDBRestoreSpec says what is restored, where to, and up to when. It cannot be changed, but for restoreState from
// Running to Stopped.
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
	// backupURL is the URL of the backup, as status.backups of a FoundationDBBackup shows it. It holds no secret.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^:]+://[^@]*:[^@]*@')",message="backupURL must not hold a secret: it belongs into the credentials file"
	BackupURL string `json:"backupURL,omitempty"`

	// backupName is a FoundationDBBackup of the same namespace: its newest backup that can be restored is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	BackupName string `json:"backupName,omitempty"`

	// credentials is the Secret with the accounts of the object store; with backupName that of the backup by default. The
	// destination's backup agents must have the account too.
	// +optional
	Credentials *CredentialsReference `json:"credentials,omitempty"`

	// destinationClusterName is the FoundationDBCluster, of the same namespace, that is restored into. What is restored must be
	// empty there, and backup agents must run for it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DestinationClusterName string `json:"destinationClusterName"`

	// sourceClusterName is the FoundationDBCluster, of the same namespace, that was backed up. A timestamp needs it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SourceClusterName string `json:"sourceClusterName,omitempty"`

	// restoreState is what the restore shall do. Stopped aborts it: the destination then holds partial data.
	// +optional
	// +kubebuilder:default=Running
	RestoreState RestoreState `json:"restoreState,omitempty"`

	// keyRanges are what is restored; everything by default.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	KeyRanges []KeyRange `json:"keyRanges,omitempty"`

	// version is the database's version that is restored to; the latest by default. It wins over timestamp.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Version int64 `json:"version,omitempty"`

	// timestamp is the time that is restored to.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`

	// tag begins the restore's name in the database; the object's name by default. A part of the object's UID is added, so that
	// no earlier restore is taken for this one.
	// +optional
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9_-]*$')",message="tag may hold only letters, digits, _ and -"
	Tag string `json:"tag,omitempty"`
}

// RestoreState is what a restore shall do.
//
// +kubebuilder:validation:Enum=Running;Stopped
type RestoreState string

// The states of a restore that can be asked for.
const (
	RestoreStateRunning RestoreState = "Running"
	RestoreStateStopped RestoreState = "Stopped"
)

// FoundationDBRestoreStatus is what is known about a restore.
type FoundationDBRestoreStatus struct {
	// observedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state is pending until the restore was started, then FoundationDB's name of its state (queued, starting, running, completed,
	// aborted), finalizing while its end is checked, or failed if that finds something wrong.
	// +optional
	State string `json:"state,omitempty"`

	// conditions are what is not as the spec says; one is there only while it holds.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// plan is what is restored, written before the start.
	// +optional
	Plan *RestorePlan `json:"plan,omitempty"`

	// progress is how far the restore is.
	// +optional
	Progress *RestoreProgress `json:"progress,omitempty"`

	// restoredVersion is the version that was restored, once the restore has ended and its end was checked.
	// +optional
	RestoredVersion int64 `json:"restoredVersion,omitempty"`

	// finalization are the tasks after the end of the restore.
	// +optional
	// +listType=atomic
	Finalization []RestoreTask `json:"finalization,omitempty"`
}

// RestorePlan is what is restored.
type RestorePlan struct {
	// tag is the restore's name in the database.
	Tag string `json:"tag"`
	// url is where the data come from. It holds no secret.
	URL string `json:"url"`
	// version is the database's version that is restored to.
	Version int64 `json:"version"`
	// timestamp is about when it was.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`
	// destination is the description:id of the database that is restored into.
	Destination string `json:"destination"`
}

// RestoreProgress is how far a restore is.
type RestoreProgress struct {
	// percentDone is the share of blocks that were restored.
	PercentDone int32 `json:"percentDone"`
	// bytesWritten is what was written into the destination.
	// +optional
	BytesWritten int64 `json:"bytesWritten,omitempty"`
}

// RestoreTask is one task of the finalization.
type RestoreTask struct {
	// name of the task.
	Name string `json:"name"`
	// phase is InProgress, Completed or Failed.
	Phase string `json:"phase"`
	// errors are what it found wrong.
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
