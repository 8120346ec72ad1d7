package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// Phase is the phase in the status.
func Phase(object client.Object) oadpv1alpha1.NonAdminPhase { return *of(object).phase }

// Accepted is the Accepted condition; nil if the spec was never judged.
func Accepted(object client.Object) *metav1.Condition {
	return meta.FindStatusCondition(*of(object).conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
}

// EverCreated reports whether the status says that the Velero object was made once. Queued counts too because the phase changes.
func EverCreated(object client.Object) bool {
	r := of(object)
	return *r.phase == oadpv1alpha1.NonAdminPhaseCreated ||
		meta.IsStatusConditionTrue(*r.conditions, string(oadpv1alpha1.NonAdminConditionQueued))
}

// DeletionRequested reports whether the object is being deleted, or is to be, in any of the ways: its spec does not matter any
// more.
func DeletionRequested(object client.Object) bool {
	nab, is := object.(*oadpv1alpha1.NonAdminBackup)
	return !object.GetDeletionTimestamp().IsZero() || (is && (nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup))
}

// AbsenceReported reports whether the status says that the Velero object is gone.
func AbsenceReported(object client.Object) bool {
	accepted := Accepted(object)
	return accepted != nil && accepted.Reason == of(object).kind.absent.Reason
}

// SpecValidated reports whether the Accepted condition is about the present generation and would be the same today, by a verdict
// that may not be known. Outside BackingOff a judged spec is judged again only if the Velero object has reappeared.
func SpecValidated(object client.Object, exists bool, today *check.Verdict) bool {
	r, accepted := of(object), Accepted(object)
	if accepted == nil || accepted.ObservedGeneration != r.GetGeneration() {
		return false
	}
	if *r.phase != oadpv1alpha1.NonAdminPhaseBackingOff {
		return !exists || !AbsenceReported(object)
	}
	return accepted.Reason == r.kind.refused || today == nil ||
		(today.Reason == accepted.Reason && today.Message == accepted.Message)
}
