package drill

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/verdict"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
)

// Kubernetes Events on a RestoreDrill, best effort: written once, after the change that they report. That of a verdict has its
// reason.
const (
	eventRestoring = "Restoring"
	eventEnded     = "Ended"
)

// recordChanges writes Events about what a new status says, and counts verdicts.
func (a *Activities) recordChanges(drill *holdfastv1alpha1.RestoreDrill, before *holdfastv1alpha1.RestoreDrillStatus) {
	after := &drill.Status
	if before.Started == nil && after.Started != nil {
		a.Record(drill, corev1.EventTypeNormal, eventRestoring, "Restore", "restoring NonAdminBackup %s into namespace %s",
			after.Backup, after.Namespace)
	}
	verified := verdict.Of(after.Conditions)
	if before.Concluded == nil && after.Concluded != nil && verified != nil {
		a.Record(drill, verdict.EventType(verified), verified.Reason, "Verify", "%s", verified.Message)
		metrics.DrillConcluded(verified.Reason)
		countFailures(after, verified.Reason)
		if measured := after.Measured; verified.Status == metav1.ConditionTrue && measured != nil {
			metrics.DrillRecovered(measured.RestoreSeconds + measured.ReadySeconds)
		}
	}
	if before.Ended == nil && after.Ended != nil && after.Started != nil {
		a.Record(drill, corev1.EventTypeNormal, eventEnded, "CleanUp", "nothing is left of the drill")
	}
}

// countFailures counts the checks that have failed.
func countFailures(status *holdfastv1alpha1.RestoreDrillStatus, reason string) {
	if reason != holdfastv1alpha1.ReasonRestoreFailed && reason != holdfastv1alpha1.ReasonChecksFailed {
		return
	}
	failed := false
	for _, check := range status.Checks {
		if check.Result == holdfastv1alpha1.DrillFailed {
			metrics.DrillCheckFailed(check.Name)
			failed = true
		}
	}
	if !failed { // Velero has not restored it, or not all of it
		metrics.DrillCheckFailed(metrics.DrillRestoreFailed)
	}
}
