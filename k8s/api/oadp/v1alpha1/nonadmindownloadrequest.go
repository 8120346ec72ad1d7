package v1alpha1

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NonAdminDownloadRequest requests a URL from which a file of a NonAdminBackup or NonAdminRestore can be downloaded.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nonadmindownloadrequests,shortName=nadr,categories=holdfast
// +kubebuilder:printcolumn:name="Request-Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Complete",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Complete')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Complete')].reason"
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type NonAdminDownloadRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the NonAdminDownloadRequest.
	// +optional
	Spec NonAdminDownloadRequestSpec `json:"spec,omitempty"`
	// status is the last observed state of the NonAdminDownloadRequest. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status NonAdminDownloadRequestStatus `json:"status,omitempty"`
}

// NonAdminDownloadRequestSpec is what a tenant wants to download.
type NonAdminDownloadRequestSpec struct {
	// target is the file to download. Its name is the name of a NonAdminBackup or NonAdminRestore in the same namespace.
	// +required
	Target velerov1.DownloadTarget `json:"target"`
}

// NonAdminDownloadRequestStatus is what is known about a download.
type NonAdminDownloadRequestStatus struct {
	// observedGeneration is the generation of the spec that the conditions are about. It is -1 until the object is observed, and
	// absent where the CRD of another installation drops it; each condition has its own, too.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// velero is the Velero DownloadRequest that was created for the NonAdminDownloadRequest.
	// +optional
	VeleroDownloadRequest VeleroDownloadRequest `json:"velero,omitempty"`

	// phase is the phase of the NonAdminDownloadRequest: New, BackingOff (not accepted), Created or Deleting.
	// +optional
	Phase NonAdminPhase `json:"phase,omitempty"`

	// conditions are the latest observation of the request: whether the file can be downloaded, or why not. One at a time.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VeleroDownloadRequest mirrors a Velero DownloadRequest.
type VeleroDownloadRequest struct {
	// status is a copy of the Velero DownloadRequest's status, with the URL and when it expires.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *velerov1.DownloadRequestStatus `json:"status,omitempty"`
}

// NonAdminDownloadRequestList is a list of NonAdminDownloadRequests.
//
// +kubebuilder:object:root=true
type NonAdminDownloadRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NonAdminDownloadRequest `json:"items"`
}
