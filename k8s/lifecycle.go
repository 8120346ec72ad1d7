package k8s

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// phaseRank orders the phases of backups and restores: a phase never goes back (docs/tenants.md, "Phases"). BackingOff is left
// for Created directly.
var phaseRank = map[oadpv1alpha1.NonAdminPhase]int{
	oadpv1alpha1.NonAdminPhaseNew:        1,
	oadpv1alpha1.NonAdminPhaseBackingOff: 2,
	oadpv1alpha1.NonAdminPhaseCreated:    3,
	oadpv1alpha1.NonAdminPhaseDeleting:   4,
}

// Advance moves the phase of a backup or restore forward, and never back.
func Advance(phase *oadpv1alpha1.NonAdminPhase, to oadpv1alpha1.NonAdminPhase) {
	if phaseRank[to] > phaseRank[*phase] {
		*phase = to
	}
}

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
