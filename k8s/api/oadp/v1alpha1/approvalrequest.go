package v1alpha1

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NonAdminBackupStorageLocationApprovalRequest requests the administrators' decision about a tenant's storage location.
// It lives in the OADP namespace, where tenants cannot reach it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nonadminbackupstoragelocationapprovalrequests,shortName=nabslapprovalrequest
// +kubebuilder:printcolumn:name="Approved",type="string",JSONPath=".status.conditions[?(@.type=='ClusterAdminApproved')].status"
// +kubebuilder:printcolumn:name="Pending-Decision",type="string",JSONPath=".spec.pendingApprovalDecision"
// +kubebuilder:printcolumn:name="Request-Namespace",type="string",JSONPath=".status.veleroBackupStorageLocationApprovalRequest.namespace"
// +kubebuilder:printcolumn:name="Request-Name",type="string",JSONPath=".status.veleroBackupStorageLocationApprovalRequest.name"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:selectablefield:JSONPath=`.spec.pendingApprovalDecision`
type NonAdminBackupStorageLocationApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the decision of the administrators.
	// +optional
	Spec NonAdminBackupStorageLocationApprovalRequestSpec `json:"spec,omitempty"`
	// status is what is to be decided and what was decided. Read-only.
	// +optional
	Status NonAdminBackupStorageLocationApprovalRequestStatus `json:"status,omitempty"`
}

// ApprovalDecision is what an administrator decides about a pending specification.
// +kubebuilder:validation:Enum=approve;reject;pending
type ApprovalDecision string

// Decisions about a pending specification. None is the same as pending.
const (
	// ApprovalDecisionApprove allows the pending specification.
	ApprovalDecisionApprove ApprovalDecision = "approve"
	// ApprovalDecisionReject refuses the pending specification; one that was approved before stays in use.
	ApprovalDecisionReject ApprovalDecision = "reject"
	// ApprovalDecisionPending leaves the pending specification undecided.
	ApprovalDecisionPending ApprovalDecision = "pending"
)

// NonAdminBackupStorageLocationApprovalRequestSpec is what the administrators decide.
type NonAdminBackupStorageLocationApprovalRequestSpec struct {
	// pendingApprovalDecision is the decision about pendingSpec of the status: approve, reject or pending. Empty is the same as
	// pending. A rejected change leaves the approved specification in use.
	// +optional
	PendingApprovalDecision ApprovalDecision `json:"pendingApprovalDecision,omitempty"`

	// revokeApprovedSpec revokes the approval if true, whatever pendingApprovalDecision says: the Velero BackupStorageLocation and
	// its Secret are removed, the decision becomes pending, and pendingSpec becomes the tenant's latest specification. Defaults to
	// false.
	// +optional
	RevokeApprovedSpec bool `json:"revokeApprovedSpec,omitempty"`
}

// NonAdminBackupStorageLocationApprovalRequestStatus is what has to be decided and what was decided.
type NonAdminBackupStorageLocationApprovalRequestStatus struct {
	// veleroBackupStorageLocationApprovalRequest holds the specifications and says whose they are.
	// +optional
	VeleroBackupStorageLocationApprovalRequest *VeleroBackupStorageLocationApprovalRequest `json:"veleroBackupStorageLocationApprovalRequest,omitempty"`

	// conditions are the latest observations of the request: what was decided, and why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastDecision is the last decision that was acted on.
	// +optional
	LastDecision *ApprovalRecord `json:"lastDecision,omitempty"`

	// observedGeneration is the generation of the spec that was acted on last. A decision counts if its generation is higher.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// RecordedDecision is a decision as it is recorded, in the words of ApprovalDecision, which are the Non-Admin Controller's.
// +kubebuilder:validation:Enum=approve;reject;revoke
type RecordedDecision string

// Decisions as they are recorded.
const (
	// RecordedApprove: the pending specification was approved.
	RecordedApprove RecordedDecision = "approve"
	// RecordedReject: the pending specification was rejected.
	RecordedReject RecordedDecision = "reject"
	// RecordedRevoke: the approval was revoked.
	RecordedRevoke RecordedDecision = "revoke"
)

// ApprovalRecord says what was decided, by whom, when and why.
type ApprovalRecord struct {
	// decision is the decision that was made: approve, reject or revoke.
	Decision RecordedDecision `json:"decision"`
	// decidedBy is who decided: a Kubernetes username, the identity of a Temporal client, which is not verified, or where the name
	// can be found.
	DecidedBy string `json:"decidedBy"`
	// decidedAt is the time at which the decision was acted on.
	DecidedAt metav1.Time `json:"decidedAt"`
	// reason is the reason that the administrator gave. At most 512 bytes.
	// +optional
	Reason string `json:"reason,omitempty"`
	// observedGeneration is the generation of the spec that held the decision.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// VeleroBackupStorageLocationApprovalRequest holds a storage location's pending and approved specification.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.nacuuid) || (has(self.nacuuid) && self.nacuuid == oldSelf.nacuuid)",message="nacuuid says which storage location the request is for and cannot be changed once it is set."
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.name) || (has(self.name) && self.name == oldSelf.name)",message="name says which storage location the request is for and cannot be changed once it is set."
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__namespace__) || (has(self.__namespace__) && self.__namespace__ == oldSelf.__namespace__)",message="namespace says whose storage location the request is for and cannot be changed once it is set."
type VeleroBackupStorageLocationApprovalRequest struct {
	// pendingSpec is the specification that waits for a decision. It is cleared when it is approved.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PendingSpec *velerov1.BackupStorageLocationSpec `json:"pendingSpec,omitempty"`

	// approvedSpec is the specification in use.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ApprovedSpec *velerov1.BackupStorageLocationSpec `json:"approvedSpec,omitempty"`

	// nacuuid is the NACUUID of the NonAdminBackupStorageLocation.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	NACUUID string `json:"nacuuid,omitempty"`

	// name is the name of the NonAdminBackupStorageLocation.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// namespace is the namespace of the NonAdminBackupStorageLocation.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// NonAdminBackupStorageLocationApprovalRequestList is a list of NonAdminBackupStorageLocationApprovalRequests.
//
// +kubebuilder:object:root=true
type NonAdminBackupStorageLocationApprovalRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NonAdminBackupStorageLocationApprovalRequest `json:"items"`
}
