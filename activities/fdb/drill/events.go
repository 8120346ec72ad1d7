package drill

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/verdict"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
)

// Kubernetes Events on a FoundationDBDrill, best effort: written once, after the change that they report. That of a verdict has
// its reason.
const (
	eventRestoring  = "Restoring"
	eventEnded      = "Ended"
	eventNotCleared = "TargetNotCleared"
)

// recordChanges writes Events about what a new status says, and counts verdicts.
func (a *Activities) recordChanges(drill *fdbv1alpha1.FoundationDBDrill, before *fdbv1alpha1.FoundationDBDrillStatus) {
	after := &drill.Status
	if before.Begun == nil && after.Begun != nil {
		a.Record(drill, corev1.EventTypeNormal, eventRestoring, "Restore", "version %d is restored into FoundationDBCluster %s",
			after.Version, drill.Spec.TargetClusterName)
	}
	verified := verdict.Of(after.Conditions)
	if before.Concluded == nil && after.Concluded != nil && verified != nil {
		a.Record(drill, verdict.EventType(verified), verified.Reason, "Verify", "%s", verified.Message)
		metrics.FDBDrillConcluded(verified.Reason)
		if measured := after.Measured; verified.Status == metav1.ConditionTrue && measured != nil {
			metrics.FDBDrillRestored(measured.RestoreSeconds)
		}
	}
	if before.Uncleared == "" && after.Uncleared != "" {
		a.Record(drill, corev1.EventTypeWarning, eventNotCleared, "CleanUp", "Holdfast keeps trying: %s", after.Uncleared)
	}
	if before.Ended == nil && after.Ended != nil && after.Begun != nil {
		if after.Cleared == nil {
			a.Record(drill, corev1.EventTypeWarning, eventNotCleared, "CleanUp",
				"the target may hold what the drill has restored: see status.findings")
			return
		}
		a.Record(drill, corev1.EventTypeNormal, eventEnded, "CleanUp", "nothing of the drill is left in the target")
	}
}
