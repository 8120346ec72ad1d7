package kstatus

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/velero"
)

// Reasons that are not those of another condition, or a phase of Velero's. All are Holdfast's own.
const (
	// ReasonPending: the object is not validated yet, or its Velero object not made, or not begun.
	ReasonPending = "Pending"
	// ReasonDeleting: the object is being deleted, or is to be.
	ReasonDeleting = "Deleting"
)

// velerosBackup is what the status repeats of the Velero Backup.
func velerosBackup(made *oadpv1alpha1.VeleroBackup) finding {
	if made == nil || made.Status == nil {
		return ofPhase("", "")
	}
	return ofPhase(made.Status.Phase, cmp.Or(made.Status.FailureReason, first(made.Status.ValidationErrors)))
}

// velerosRestore is what the status repeats of the Velero Restore, and what came of the work after it: a restore ends with that.
// OADP's CRD drops status.finalization, so the condition counts. A restore that another controller has made has none.
func velerosRestore(made *oadpv1alpha1.VeleroRestore, conditions []metav1.Condition) finding {
	if made == nil || made.Status == nil {
		return ofPhase("", "")
	}
	found := ofPhase(made.Status.Phase, cmp.Or(made.Status.FailureReason, first(made.Status.ValidationErrors)))
	finalized := meta.FindStatusCondition(conditions, string(oadpv1alpha1.NonAdminConditionFinalized))
	switch {
	case finalized == nil || !velero.Usable(made.Status.Phase):
	case finalized.Status != metav1.ConditionTrue:
		return finding{inProgress, finalized.Reason, finalized.Message}
	case velero.Good(made.Status.Phase) && finalized.Reason == oadpv1alpha1.ReasonFinalizationPartiallyFailed:
		return finding{failed, finalized.Reason, finalized.Message}
	}
	return found
}

func ofPhase[P ~string](phase P, problem string) finding {
	switch {
	case velero.StateOf(phase) == velero.StateWaiting:
		return finding{inProgress, ReasonPending, "Velero has not begun"}
	case velero.Good(phase):
		return finding{current, string(phase), "Velero has completed it without errors"}
	case velero.Finished(phase):
		message := fmt.Sprintf("Velero has ended it as %s", phase)
		if problem != "" {
			message += ": " + problem
		}
		return finding{failed, string(phase), message}
	}
	return finding{inProgress, string(phase), fmt.Sprintf("Velero has it in phase %s", phase)}
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// run is what came of a NonAdminBackup or NonAdminRestore, and its state now. A good backup stays Complete if its spec is made
// invalid later.
func run(object client.Object, made finding) (result, now finding) {
	accepted, conditions := lifecycle.Accepted(object), k8s.Conditions(object)
	refused := accepted != nil && accepted.Status == metav1.ConditionFalse
	absent, result := lifecycle.AbsenceReported(object), made
	_, isRestore := object.(*oadpv1alpha1.NonAdminRestore)
	switch {
	case accepted == nil && !lifecycle.EverCreated(object):
		result = finding{inProgress, ReasonPending, "the spec is not validated yet"}
	case absent && isRestore && made.state != inProgress: // what was restored stays
	case absent, refused && !lifecycle.EverCreated(object):
		result = finding{failed, accepted.Reason, accepted.Message}
		if accepted.Reason == oadpv1alpha1.ReasonQuotaExceeded { // passes by itself
			result.state = inProgress
		}
	case made.state == inProgress && k8s.Stalled(conditions):
		stalled := meta.FindStatusCondition(conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled))
		result = finding{failed, stalled.Reason, stalled.Message}
	case made.state == inProgress && k8s.WaitsForTurn(conditions):
		waiting := meta.FindStatusCondition(conditions, string(oadpv1alpha1.NonAdminConditionQueued))
		result = finding{inProgress, waiting.Reason, waiting.Message}
	}
	deleting := meta.FindStatusCondition(conditions, string(oadpv1alpha1.NonAdminConditionDeleting))
	switch {
	case deleting != nil && deleting.Status == metav1.ConditionTrue && undecided(object):
		return result, finding{failed, deleting.Reason, deleting.Message}
	case deleting != nil && deleting.Status == metav1.ConditionTrue:
		return result, finding{inProgress, ReasonDeleting, deleting.Message}
	case result.state == current && refused && !absent:
		return result, finding{failed, accepted.Reason, accepted.Message}
	}
	return result, result
}

// undecided: a NonAdminBackup was deleted, and its tenant has not chosen what becomes of the data.
func undecided(object client.Object) bool {
	nab, is := object.(*oadpv1alpha1.NonAdminBackup)
	return is && !nab.Spec.DeleteBackup && !nab.Spec.ForceDeleteBackup
}

// download: the one condition of a NonAdminDownloadRequest says all.
func download(nadr *oadpv1alpha1.NonAdminDownloadRequest) finding {
	others := Others(nadr.Status.Conditions)
	if len(others) == 0 {
		return finding{inProgress, ReasonPending, "the request is not validated yet"}
	}
	switch only := others[0]; {
	case only.Type != string(oadpv1alpha1.NonAdminConditionProcessed):
		return finding{failed, only.Reason, only.Message}
	case only.Status == metav1.ConditionTrue:
		return finding{current, only.Reason, "the URL is in the status"}
	default:
		return finding{inProgress, only.Reason, only.Message}
	}
}
