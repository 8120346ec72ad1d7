package restore

import (
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
)

// Kubernetes Events on a NonAdminRestore that a NonAdminBackup does not have, best effort: written after the change they
// speak of, once. What operators count is counted with them.
const (
	eventRestoreAccepted  = "RestoreAccepted"
	eventRestoreCreated   = "VeleroRestoreCreated"
	eventRestoreCompleted = "RestoreCompleted"
	eventRestoreFailed    = "RestoreFailed"
	eventRestoreGone      = "VeleroRestoreNotFound"
)

func (r *Activities) tell(nar *oadpv1alpha1.NonAdminRestore, kind, reason, action, note string, args ...any) {
	activities.Tell(r.Events, nar, kind, reason, action, note, args...)
}

func (r *Activities) tellVerdict(nar *oadpv1alpha1.NonAdminRestore, verdict Verdict) {
	if !verdict.Accepted {
		if nar.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
			metrics.RestoreRejected()
		}
		r.tell(nar, corev1.EventTypeWarning, verdict.Reason, "Validate", "%s", verdict.Message)
		return
	}
	if nar.Status.Phase != oadpv1alpha1.NonAdminPhaseNew { // else its creation tells as much, a moment later
		r.tell(nar, corev1.EventTypeNormal, eventRestoreAccepted, "Validate", "%s", verdict.Message)
	}
}

func (r *Activities) tellCreated(nar *oadpv1alpha1.NonAdminRestore, before contract.RestoreView) {
	if before.Phase != string(oadpv1alpha1.NonAdminPhaseBackingOff) { // else the time is that of whoever had to mend something
		metrics.RestoreCreated(nar.CreationTimestamp.Time)
	}
	r.tell(nar, corev1.EventTypeNormal, eventRestoreCreated, "Create", "created Velero Restore %s", before.Velero.Name)
}

func (r *Activities) tellStalled(nar *oadpv1alpha1.NonAdminRestore) {
	metrics.RestoreStalled()
	r.tell(nar, corev1.EventTypeWarning, activities.EventStalled, "Refresh", "%s", oadpv1alpha1.MessageVeleroRestoreStalled)
}

func (r *Activities) tellDeleting(nar *oadpv1alpha1.NonAdminRestore) {
	r.tell(nar, corev1.EventTypeNormal, activities.EventDeleting, "Delete", "%s", oadpv1alpha1.MessageRestoreDeletionAccepted)
}

func (r *Activities) tellReleased(o *Objects) {
	metrics.RestoreDeleted()
	note := "nothing is left of the restore; what it restored stays"
	if o.NamespaceTerminating {
		note = "the namespace is being deleted; Velero removes what is left of the restore"
	}
	r.tell(o.NAR, corev1.EventTypeNormal, activities.EventReleased, "Delete", "%s", note)
}

// tellRetried: a step failed and has been retried until it succeeded.
func (r *Activities) tellRetried(in contract.RestoreStep, view contract.RestoreView, info activity.Info) {
	if !view.Found {
		return
	}
	nar := &oadpv1alpha1.NonAdminRestore{ObjectMeta: metav1.ObjectMeta{
		Namespace: in.Ref.Namespace, Name: in.Ref.Name, UID: types.UID(in.Ref.UID),
	}}
	r.tell(nar, corev1.EventTypeWarning, activities.EventRetried, "Retry", "%s succeeded at attempt %d, %s after the first",
		info.ActivityType.Name, info.Attempt, time.Since(info.ScheduledTime).Round(time.Second))
}

// tellCorrected: somebody wrote the name of a Velero Restore that was not made for this object into its status.
func (r *Activities) tellCorrected(nar *oadpv1alpha1.NonAdminRestore, recorded string) {
	r.tell(nar, corev1.EventTypeWarning, activities.EventCorrected, "Refresh",
		"status.veleroRestore named %q, which was not made for this NonAdminRestore; it was ignored and corrected", recorded)
}

// tellProgress tells what Refresh wrote, as far as a tenant cares: the end of Velero's part, or its loss.
func (r *Activities) tellProgress(nar *oadpv1alpha1.NonAdminRestore, before contract.RestoreView, o *Objects) {
	after := o.View()
	if after.AbsenceReported && !before.AbsenceReported {
		r.tell(nar, corev1.EventTypeWarning, eventRestoreGone, "Refresh", "its Velero Restore no longer exists")
		return
	}
	if o.Restore == nil || before.Velero.MirroredPhase == after.Velero.MirroredPhase || !after.Velero.Finished {
		return
	}
	status := &o.Restore.Status
	var completed time.Time
	if status.CompletionTimestamp != nil {
		completed = status.CompletionTimestamp.Time
	}
	metrics.RestoreMirrored(completed)
	if o.Adopted || !Restored(status.Phase) { // else its finalization is the end
		metrics.RestoreFinished(string(status.Phase), nar.CreationTimestamp.Time)
	}
	if status.Phase == velerov1.RestorePhaseCompleted {
		r.tell(nar, corev1.EventTypeNormal, eventRestoreCompleted, "Restore",
			"Velero completed the restore (%d warnings)", status.Warnings)
		return
	}
	r.tell(nar, corev1.EventTypeWarning, eventRestoreFailed, "Restore",
		"Velero ended the restore in phase %s (%d errors, %d warnings) %s",
		status.Phase, status.Errors, status.Warnings,
		check.Concealed(status.FailureReason)+strings.Join(check.ConcealedAll(status.ValidationErrors), "; "))
}
