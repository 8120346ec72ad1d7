package k8s

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// SetCondition sets a condition of a tenant's object that has the given generation.
func SetCondition(conditions *[]metav1.Condition, generation int64,
	kind oadpv1alpha1.NonAdminCondition, status metav1.ConditionStatus, reason, message string,
) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               string(kind),
		Status:             status,
		ObservedGeneration: generation,
		Reason:             reason,
		Message:            message,
	})
}

// Conditions returns the conditions of a NonAdminBackup or NonAdminRestore, which the caller must not change.
func Conditions(object client.Object) []metav1.Condition {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		return object.Status.Conditions
	case *oadpv1alpha1.NonAdminRestore:
		return object.Status.Conditions
	}
	return nil
}

// WaitsForTurn reports whether the conditions of a NonAdminBackup or NonAdminRestore say that its spec is accepted and that it
// waits for its turn before Velero.
func WaitsForTurn(conditions []metav1.Condition) bool {
	return Waited(conditions) && meta.IsStatusConditionTrue(conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
}

// Waited reports whether an object waited for its turn when its spec was last accepted.
func Waited(conditions []metav1.Condition) bool {
	queued := meta.FindStatusCondition(conditions, string(oadpv1alpha1.NonAdminConditionQueued))
	return queued != nil && queued.Status == metav1.ConditionFalse && queued.Reason == oadpv1alpha1.ReasonWaitingForTurn
}

// Stalled reports whether the conditions of a NonAdminBackup or NonAdminRestore say that Velero does not go on.
func Stalled(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled))
}
