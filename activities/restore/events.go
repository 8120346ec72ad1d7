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
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Kubernetes Events on a NonAdminRestore that a NonAdminBackup does not have, best effort: written once, after the change that
// they report. Operators' metrics are counted at the same place.
const (
	eventRestoreAccepted  = "RestoreAccepted"
	eventRestoreCreated   = "VeleroRestoreCreated"
	eventRestoreCompleted = "RestoreCompleted"
	eventRestoreFailed    = "RestoreFailed"
	eventRestoreCancelled = "RestoreCancelled"
	eventRestoreGone      = "VeleroRestoreNotFound"
)

func (r *Activities) record(nar *oadpv1alpha1.NonAdminRestore, kind, reason, action, note string, args ...any) {
	activities.RecordEvent(r.Events, nar, kind, reason, action, note, args...)
}

func (r *Activities) recordVerdict(nar *oadpv1alpha1.NonAdminRestore, verdict check.Verdict) {
	if !verdict.Accepted {
		if nar.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
			metrics.RestoreRejected()
		}
		r.record(nar, corev1.EventTypeWarning, verdict.Reason, "Validate", "%s", verdict.Message)
		return
	}
	if nar.Status.Phase != oadpv1alpha1.NonAdminPhaseNew { // else the Event of its creation follows a moment later
		r.record(nar, corev1.EventTypeNormal, eventRestoreAccepted, "Validate", "%s", verdict.Message)
	}
}

func (r *Activities) recordCreated(nar *oadpv1alpha1.NonAdminRestore, before contract.RestoreView, withTurn bool) {
	// Else it would measure how long the tenant took, or the queue.
	if before.Phase != string(oadpv1alpha1.NonAdminPhaseBackingOff) && !before.AwaitsTurn && !withTurn {
		metrics.RestoreCreated(nar.CreationTimestamp.Time)
	}
	r.record(nar, corev1.EventTypeNormal, eventRestoreCreated, "Create", "created Velero Restore %s", before.Velero.Name)
}

// recordTurn measures how long the object has waited for the turn with which its Velero Restore was made.
func (r *Activities) recordTurn(o *Objects) {
	if o.Rules.Queue.MaxActiveRestores > 0 {
		metrics.TurnUsed(activities.TurnLane(contract.PoolRestores, contract.LaneHand), o.NAR.CreationTimestamp.Time)
	}
}

func (r *Activities) recordStalled(nar *oadpv1alpha1.NonAdminRestore) {
	metrics.RestoreStalled()
	r.record(nar, corev1.EventTypeWarning, activities.EventStalled, "Refresh", "%s", oadpv1alpha1.MessageVeleroRestoreStalled)
}

func (r *Activities) recordDeleting(nar *oadpv1alpha1.NonAdminRestore) {
	r.record(nar, corev1.EventTypeNormal, activities.EventDeleting, "Delete", "%s", oadpv1alpha1.MessageRestoreDeletionAccepted)
}

func (r *Activities) recordReleased(o *Objects) {
	metrics.RestoreDeleted()
	note := "nothing is left of the restore; what it restored stays"
	if o.NamespaceTerminating {
		note = "the namespace is being deleted; Velero removes what is left of the restore"
	}
	r.record(o.NAR, corev1.EventTypeNormal, activities.EventReleased, "Delete", "%s", note)
}

// recordRetried: a step failed and has been retried until it succeeded.
func (r *Activities) recordRetried(in contract.RestoreStep, view contract.RestoreView, info activity.Info) {
	if !view.Found {
		return
	}
	nar := &oadpv1alpha1.NonAdminRestore{ObjectMeta: metav1.ObjectMeta{
		Namespace: in.Ref.Namespace, Name: in.Ref.Name, UID: types.UID(in.Ref.UID),
	}}
	r.record(nar, corev1.EventTypeWarning, activities.EventRetried, "Retry", "%s succeeded at attempt %d, %s after the first",
		info.ActivityType.Name, info.Attempt, time.Since(info.ScheduledTime).Round(time.Second))
}

// recordCorrected: the status named a Velero Restore that was not made for this object.
func (r *Activities) recordCorrected(nar *oadpv1alpha1.NonAdminRestore, recorded string) {
	r.record(nar, corev1.EventTypeWarning, activities.EventCorrected, "Refresh",
		"status.veleroRestore named %q, which was not made for this NonAdminRestore; it was ignored and corrected", recorded)
}

// recordProgress writes Events for what Refresh changed that tenants need to know: the end of Velero's part, or its loss.
func (r *Activities) recordProgress(nar *oadpv1alpha1.NonAdminRestore, before contract.RestoreView, o *Objects) {
	after := o.View()
	if after.AbsenceReported && !before.AbsenceReported {
		r.record(nar, corev1.EventTypeWarning, eventRestoreGone, "Refresh", "its Velero Restore no longer exists")
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
	if o.Adopted || !velero.Usable(status.Phase) { // else its finalization is the end
		metrics.RestoreFinished(string(status.Phase), nar.CreationTimestamp.Time)
	}
	if status.Phase == velerov1.RestorePhaseCompleted {
		r.record(nar, corev1.EventTypeNormal, eventRestoreCompleted, "Restore",
			"Velero completed the restore (%d warnings)", status.Warnings)
		return
	}
	if velero.Cancelled(status.Phase) {
		r.record(nar, corev1.EventTypeWarning, eventRestoreCancelled, "Restore",
			"the restore was cancelled in Velero: what it had restored stays, and nothing follows")
		return
	}
	r.record(nar, corev1.EventTypeWarning, eventRestoreFailed, "Restore",
		"Velero ended the restore in phase %s (%d errors, %d warnings) %s",
		status.Phase, status.Errors, status.Warnings,
		check.Concealed(status.FailureReason)+strings.Join(check.ConcealedAll(status.ValidationErrors), "; "))
}
