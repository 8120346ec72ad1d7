package v1alpha1

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NonAdminBackup requests a backup of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nonadminbackups,shortName=nab,categories=holdfast
// +kubebuilder:printcolumn:name="Request-Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Velero-Phase",type="string",JSONPath=".status.veleroBackup.status.phase"
// +kubebuilder:printcolumn:name="Queue-Position",type="integer",JSONPath=".status.queueInfo.estimatedQueuePosition"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Complete",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Complete')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Complete')].reason"
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type NonAdminBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the NonAdminBackup.
	// +optional
	Spec NonAdminBackupSpec `json:"spec,omitempty"`
	// status is the last observed state of the NonAdminBackup. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status NonAdminBackupStatus `json:"status,omitempty"`
}

// NonAdminBackupSpec is what a tenant wants backed up, or deleted.
type NonAdminBackupSpec struct {
	// backupSpec is the specification of the Velero Backup. It takes effect once: after the Backup is created, changes are
	// validated and have no other effect.
	// +required
	BackupSpec *velerov1.BackupSpec `json:"backupSpec"`

	// deleteBackup deletes the NonAdminBackup, its Velero Backup and the data in the object store if true. Defaults to false.
	// +optional
	DeleteBackup bool `json:"deleteBackup,omitempty"`

	// forceDeleteBackup deletes the NonAdminBackup and its Velero Backup from the cluster if true, even if the data in the object
	// store cannot be deleted. Takes precedence over deleteBackup. Defaults to false.
	// +optional
	ForceDeleteBackup bool `json:"forceDeleteBackup,omitempty"`

	// Unreadable says why backupSpec could not be decoded and is nil, although the API server holds one. It is never
	// written.
	Unreadable string `json:"-"`
}

// NonAdminBackupStatus is what is known about a backup.
type NonAdminBackupStatus struct {
	// observedGeneration is the generation of the spec that the conditions are about. It is -1 until the object is observed, and
	// absent where the CRD of another installation drops it; each condition has its own, too.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the phase of the NonAdminBackup: New, BackingOff (not accepted), Created or Deleting.
	// +optional
	Phase NonAdminPhase `json:"phase,omitempty"`

	// conditions are the latest observations of the NonAdminBackup, each with its reason.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// queueInfo is the position of the backup in Velero's queue.
	// +optional
	QueueInfo *QueueInfo `json:"queueInfo,omitempty"`

	// veleroBackup is the Velero Backup that was created for the NonAdminBackup.
	// +optional
	VeleroBackup *VeleroBackup `json:"veleroBackup,omitempty"`

	// veleroDeleteBackupRequest is the Velero DeleteBackupRequest that deletes the data.
	// +optional
	VeleroDeleteBackupRequest *VeleroDeleteBackupRequest `json:"veleroDeleteBackupRequest,omitempty"`

	// dataMoverDataUploads counts the volumes that the data mover uploads.
	// +optional
	DataMoverDataUploads *DataMoverDataUploads `json:"dataMoverDataUploads,omitempty"`

	// fileSystemPodVolumeBackups counts the volumes that are backed up from their file system.
	// +optional
	FileSystemPodVolumeBackups *FileSystemPodVolumeBackups `json:"fileSystemPodVolumeBackups,omitempty"`

	// lastDrill is the newest RestoreDrill that has shown whether the backup is good: condition Verified is its verdict.
	// +optional
	LastDrill *BackupDrill `json:"lastDrill,omitempty"`
}

// BackupDrill is a RestoreDrill that has restored a backup. The object may be gone.
type BackupDrill struct {
	// name is the name of the RestoreDrill.
	Name string `json:"name"`
	// concluded is when the drill had its verdict.
	Concluded metav1.Time `json:"concluded"`
	// restoreSeconds is how long Velero took to restore the backup, in seconds.
	// +optional
	RestoreSeconds int64 `json:"restoreSeconds,omitempty"`
	// readySeconds is how long the restored workloads took from then to become ready, in seconds.
	// +optional
	ReadySeconds int64 `json:"readySeconds,omitempty"`
}

// VeleroBackup names a Velero Backup and mirrors it.
type VeleroBackup struct {
	// spec is a copy of the Velero Backup's spec.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *velerov1.BackupSpec `json:"spec,omitempty"`

	// status is a copy of the Velero Backup's status.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *velerov1.BackupStatus `json:"status,omitempty"`

	// nacuuid is the value of the Velero Backup's label openshift.io/oadp-nab-origin-nacuuid.
	// +optional
	NACUUID string `json:"nacuuid,omitempty"`

	// name is the Velero Backup's name.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace is the Velero Backup's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// VeleroDeleteBackupRequest names a Velero DeleteBackupRequest and mirrors it.
type VeleroDeleteBackupRequest struct {
	// status is a copy of the DeleteBackupRequest's status.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *velerov1.DeleteBackupRequestStatus `json:"status,omitempty"`

	// nacuuid is the NACUUID of the backup to be deleted.
	// +optional
	NACUUID string `json:"nacuuid,omitempty"`

	// name is the DeleteBackupRequest's name.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace is the DeleteBackupRequest's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// NonAdminBackupList is a list of NonAdminBackups.
//
// +kubebuilder:object:root=true
type NonAdminBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NonAdminBackup `json:"items"`
}
