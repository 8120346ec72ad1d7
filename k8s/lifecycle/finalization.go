package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Where OADP's CRDs are installed, the API server drops status.finalization of a NonAdminRestore. So condition Finalized counts.

// ApplyFinalizing records, with Velero's end, that the finalization follows: until it has begun, nothing else says so.
func ApplyFinalizing(nar *oadpv1alpha1.NonAdminRestore) {
	if meta.FindStatusCondition(nar.Status.Conditions, string(oadpv1alpha1.NonAdminConditionFinalized)) == nil {
		k8s.SetCondition(&nar.Status.Conditions, nar.Generation, oadpv1alpha1.NonAdminConditionFinalized, metav1.ConditionFalse,
			oadpv1alpha1.ReasonFinalizing, oadpv1alpha1.MessageFinalizing)
	}
}

// FinalPhase is the phase in which the finalization has ended; empty if it has not.
func FinalPhase(nar *oadpv1alpha1.NonAdminRestore) oadpv1alpha1.FinalizationPhase {
	finalized := meta.FindStatusCondition(nar.Status.Conditions, string(oadpv1alpha1.NonAdminConditionFinalized))
	switch {
	case nar.Status.Finalization != nil && nar.Status.Finalization.Phase.Final():
		return nar.Status.Finalization.Phase
	case finalized == nil || finalized.Status != metav1.ConditionTrue:
		return ""
	case finalized.Reason == oadpv1alpha1.ReasonFinalizationPartiallyFailed:
		return oadpv1alpha1.FinalizationPhasePartiallyFailed
	}
	return oadpv1alpha1.FinalizationPhaseCompleted
}

// FinalizationPhase is the phase of the finalization; empty before Velero's end.
func FinalizationPhase(nar *oadpv1alpha1.NonAdminRestore) oadpv1alpha1.FinalizationPhase {
	switch phase := FinalPhase(nar); {
	case phase != "":
		return phase
	case nar.Status.Finalization != nil:
		return nar.Status.Finalization.Phase
	case meta.FindStatusCondition(nar.Status.Conditions, string(oadpv1alpha1.NonAdminConditionFinalized)) != nil:
		return oadpv1alpha1.FinalizationPhaseInProgress
	}
	return ""
}
