package v1alpha1

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NonAdminBackupStorageLocation is a place in an object store where a tenant's backups go.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nonadminbackupstoragelocations,shortName=nabsl,categories=holdfast
// +kubebuilder:printcolumn:name="Request-Approved",type="string",JSONPath=".status.conditions[?(@.type=='ClusterAdminApproved')].status"
// +kubebuilder:printcolumn:name="Request-Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Velero-Phase",type="string",JSONPath=".status.veleroBackupStorageLocation.status.phase"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type NonAdminBackupStorageLocation struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the NonAdminBackupStorageLocation.
	// +optional
	Spec NonAdminBackupStorageLocationSpec `json:"spec,omitempty"`
	// status is the last observed state of the NonAdminBackupStorageLocation. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status NonAdminBackupStorageLocationStatus `json:"status,omitempty"`
}

// NonAdminBackupStorageLocationSpec is the storage location a tenant wants.
type NonAdminBackupStorageLocationSpec struct {
	// backupStorageLocationSpec is the specification of the Velero BackupStorageLocation. Its credential names a
	// Secret in the namespace of the NonAdminBackupStorageLocation.
	// +required
	BackupStorageLocationSpec *velerov1.BackupStorageLocationSpec `json:"backupStorageLocationSpec"`

	// Unreadable says why backupStorageLocationSpec could not be decoded and is nil, although the API server holds one. It is never
	// written.
	Unreadable string `json:"-"`
}

// NonAdminBackupStorageLocationStatus is what is known about a storage location.
type NonAdminBackupStorageLocationStatus struct {
	// observedGeneration is the generation of the spec that the conditions are about. It is -1 until the object is observed, and
	// absent where the CRD of another installation drops it; each condition has its own, too.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the phase of the NonAdminBackupStorageLocation: New, BackingOff (not accepted), Created or Deleting.
	// +optional
	Phase NonAdminPhase `json:"phase,omitempty"`

	// conditions are the latest observations of the NonAdminBackupStorageLocation, each with its reason.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// veleroBackupStorageLocation is the Velero BackupStorageLocation that was created for the NonAdminBackupStorageLocation.
	// +optional
	VeleroBackupStorageLocation *VeleroBackupStorageLocation `json:"veleroBackupStorageLocation,omitempty"`
}

// VeleroBackupStorageLocation names a Velero BackupStorageLocation and mirrors its status.
type VeleroBackupStorageLocation struct {
	// status is a copy of the Velero BackupStorageLocation's status.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *velerov1.BackupStorageLocationStatus `json:"status,omitempty"`

	// nacuuid is the value of the Velero BackupStorageLocation's label openshift.io/oadp-nabsl-origin-nacuuid.
	// +optional
	NACUUID string `json:"nacuuid,omitempty"`

	// name is the Velero BackupStorageLocation's name.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace is the Velero BackupStorageLocation's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// NonAdminBackupStorageLocationList is a list of NonAdminBackupStorageLocations.
//
// +kubebuilder:object:root=true
type NonAdminBackupStorageLocationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NonAdminBackupStorageLocation `json:"items"`
}
