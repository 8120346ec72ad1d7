package location

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/locationspec"
	"holdfast.dev/holdfast/workflows/contract"
)

// InForce returns the tenant's spec that may be used now, nil if there is none, and the state of the approval of the present
// spec. While a change waits for approval, or was rejected, or is invalid, the spec approved before is in force. Another
// credential needs no approval.
func (o *Objects) InForce() (*velerov1.BackupStorageLocationSpec, contract.Approval) {
	spec := o.Location.Spec.BackupStorageLocationSpec
	if !o.Location.DeletionTimestamp.IsZero() {
		return nil, contract.ApprovalUnknown
	}
	if !o.Rules.RequireApproval() {
		if !o.Usable() {
			return nil, contract.ApprovalUnknown
		}
		return spec, contract.ApprovalNotRequired
	}
	pending, approved := o.specs()
	switch {
	case !o.Usable():
		return approved, contract.ApprovalUnknown
	case approved != nil && locationspec.SameButCredential(spec, approved):
		return spec, contract.ApprovalApproved
	case pending == nil || !locationspec.SameButCredential(spec, pending):
		return approved, contract.ApprovalNotRequested
	case o.pendingRejected():
		return approved, contract.ApprovalRejected
	}
	return approved, contract.ApprovalPending
}

// specs returns the specs in the approval request.
func (o *Objects) specs() (pending, approved *velerov1.BackupStorageLocationSpec) {
	if o.Request == nil || o.Request.Status.VeleroBackupStorageLocationApprovalRequest == nil {
		return nil, nil
	}
	request := o.Request.Status.VeleroBackupStorageLocationApprovalRequest
	return request.PendingSpec, request.ApprovedSpec
}

func (o *Objects) pendingRejected() bool {
	condition := meta.FindStatusCondition(o.Request.Status.Conditions, string(oadpv1alpha1.NonAdminConditionClusterAdminApproved))
	return condition != nil && condition.Reason == oadpv1alpha1.ReasonBSLSpecRejected
}

// NewVelero builds the Velero BackupStorageLocation for a spec.
func (o *Objects) NewVelero(spec *velerov1.BackupStorageLocationSpec) *velerov1.BackupStorageLocation {
	object := &velerov1.BackupStorageLocation{
		ObjectMeta: o.originMeta(),
		Spec:       locationspec.Build(spec, o.Rules, o.Location.Namespace, o.Name),
	}
	object.Labels[oadpv1alpha1.RegistryLabel] = locationspec.RegistryLabelOf(&object.Spec)
	if object.Spec.ValidationFrequency != nil && o.Copy != nil {
		object.Annotations[oadpv1alpha1.CopiedVersionAnnotation] = o.copiedVersion()
	}
	return object
}

// unvalidated reports whether Velero has validated the location with another copy of the Secret than the present one, and would
// not do so again before its period is over; with validationFrequency 0 never (velero#4485). While Velero has not ended a
// validation its result is not known, and would undo what is written here.
func unvalidated(made, wanted *velerov1.BackupStorageLocation) bool {
	version, counts := wanted.Annotations[oadpv1alpha1.CopiedVersionAnnotation]
	return counts && made.Annotations[oadpv1alpha1.CopiedVersionAnnotation] != version && made.Status.LastValidationTime != nil
}

// NewRequest builds the approval request. Its status, which holds the spec to be decided, is written by the approval workflow.
func (o *Objects) NewRequest() *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest {
	return &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{
		ObjectMeta: o.originMeta(),
		Spec: oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestSpec{
			PendingApprovalDecision: oadpv1alpha1.ApprovalDecisionPending,
		},
	}
}

// originMeta is the metadata for objects that are made for the location in the OADP namespace.
func (o *Objects) originMeta() metav1.ObjectMeta {
	return owner.Location.Meta(o.Location, o.Name, o.OADPNamespace, o.Name)
}

// CopyMeta is originMeta for the copy of a Secret.
func (o *Objects) CopyMeta(credential, version string) metav1.ObjectMeta {
	object := o.originMeta()
	object.Annotations[oadpv1alpha1.CopiedFromAnnotation] = credential
	object.Annotations[oadpv1alpha1.CopiedVersionAnnotation] = version
	return object
}

// copiedVersion is the version of the Secret that was copied; empty without a copy.
func (o *Objects) copiedVersion() string {
	if o.Copy == nil {
		return ""
	}
	return o.Copy.GetAnnotations()[oadpv1alpha1.CopiedVersionAnnotation]
}

// CredentialOf names a spec's credential, `<Secret's name>/<key>`.
func CredentialOf(spec *velerov1.BackupStorageLocationSpec) string {
	if spec.Credential == nil {
		return ""
	}
	return spec.Credential.Name + "/" + spec.Credential.Key
}

// VersionOf identifies the content of a Secret.
func VersionOf(secret metav1.Object) string {
	return string(secret.GetUID()) + "/" + secret.GetResourceVersion()
}

// VeleroSynced reports whether the Velero BackupStorageLocation is as the spec says.
func (o *Objects) VeleroSynced(wanted *velerov1.BackupStorageLocation) bool {
	if o.Velero == nil || !apiequality.Semantic.DeepEqual(o.Velero.Spec, wanted.Spec) || unvalidated(o.Velero, wanted) {
		return false
	}
	for label, value := range wanted.Labels {
		if o.Velero.Labels[label] != value {
			return false
		}
	}
	return true
}

// copySynced reports whether the copy is up to date with the Secret that the spec names. A deleted Secret leaves the copy as it
// is.
func (o *Objects) copySynced(spec *velerov1.BackupStorageLocationSpec) bool {
	if o.Copy == nil || o.drifted {
		return false
	}
	annotations := o.Copy.GetAnnotations()
	return annotations[oadpv1alpha1.CopiedFromAnnotation] == CredentialOf(spec) &&
		(o.Secret == nil || annotations[oadpv1alpha1.CopiedVersionAnnotation] == VersionOf(o.Secret))
}
