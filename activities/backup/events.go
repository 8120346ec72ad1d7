package backup

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

// Kubernetes Events on a NonAdminBackup, best effort: written once, after the change that they report. Operators' metrics are
// counted at the same place.
const (
	eventAccepted        = "BackupAccepted"
	eventCreated         = "VeleroBackupCreated"
	eventDeletionRequest = "DeletionRequested"
	eventDeletionRetry   = "DeletionRetried"
	eventCompleted       = "BackupCompleted"
	eventFailed          = "BackupFailed"
	eventCancelled       = "BackupCancelled"
	eventGone            = "VeleroBackupNotFound"
)

func (b *Activities) now() time.Time { return time.Now() }

func (b *Activities) record(nab *oadpv1alpha1.NonAdminBackup, kind, reason, action, note string, args ...any) {
	activities.RecordEvent(b.Events, nab, kind, reason, action, note, args...)
}

func (b *Activities) recordVerdict(nab *oadpv1alpha1.NonAdminBackup, verdict check.Verdict) {
	if verdict.Accepted {
		if nab.Status.Phase != oadpv1alpha1.NonAdminPhaseNew { // else the Event of its creation follows a moment later
			b.record(nab, corev1.EventTypeNormal, eventAccepted, "Validate", "%s", verdict.Message)
		}
		return
	}
	if nab.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
		metrics.BackupRejected()
	}
	b.record(nab, corev1.EventTypeWarning, verdict.Reason, "Validate", "%s", verdict.Message)
}

func (b *Activities) recordCreated(nab *oadpv1alpha1.NonAdminBackup, before contract.BackupView, withTurn bool) {
	// Else it would measure how long the tenant took, or the queue.
	if before.Phase != string(oadpv1alpha1.NonAdminPhaseBackingOff) && !before.AwaitsTurn && !withTurn {
		metrics.BackupCreated(nab.CreationTimestamp.Time)
	}
	b.record(nab, corev1.EventTypeNormal, eventCreated, "Create", "created Velero Backup %s", before.Velero.Name)
}

// recordTurn measures how long the object has waited for the turn with which its Velero Backup was made.
func (b *Activities) recordTurn(o *Objects) {
	if o.Rules.Queue.MaxActive > 0 {
		metrics.TurnUsed(activities.TurnLane(contract.PoolBackups, queue.Lane(o.NAB)), o.NAB.CreationTimestamp.Time)
	}
}

func (b *Activities) recordStalled(nab *oadpv1alpha1.NonAdminBackup) {
	metrics.BackupStalled()
	b.record(nab, corev1.EventTypeWarning, activities.EventStalled, "Refresh", "%s", oadpv1alpha1.MessageVeleroStalled)
}

func (b *Activities) recordDeleting(nab *oadpv1alpha1.NonAdminBackup) {
	b.record(nab, corev1.EventTypeNormal, activities.EventDeleting, "Delete", "%s", DeletionMessage(nab))
}

func (b *Activities) recordDeletionRequested(nab *oadpv1alpha1.NonAdminBackup, request string, attempt int) {
	if attempt > 1 {
		b.record(nab, corev1.EventTypeWarning, eventDeletionRetry, "Delete",
			"Velero could not delete the backup; the request was sent again (DeleteBackupRequest %s, attempt %d)", request, attempt)
		return
	}
	b.record(nab, corev1.EventTypeNormal, eventDeletionRequest, "Delete",
		"requested the deletion of the backup and its data from Velero (DeleteBackupRequest %s)", request)
}

func (b *Activities) recordReleased(o *Objects) {
	metrics.BackupDeleted()
	note := "nothing is left of the backup"
	switch {
	case o.NamespaceTerminating:
		note = "the namespace is being deleted; the Velero Backup and its data stay for the administrator"
	case o.NAB.Spec.ForceDeleteBackup:
		note = "the Velero Backup is deleted; its data stay in the object store"
	}
	b.record(o.NAB, corev1.EventTypeNormal, activities.EventReleased, "Delete", "%s", note)
}

// recordRetried: a step failed and has been retried until it succeeded. The Event is written only now: the API server that
// refused the step would have refused the Event.
func (b *Activities) recordRetried(in contract.BackupStep, view contract.BackupView, info activity.Info) {
	if !view.Found {
		return
	}
	ref := in.Ref
	nab := &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{
		Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(ref.UID),
	}}
	b.record(nab, corev1.EventTypeWarning, activities.EventRetried, "Retry", "%s succeeded at attempt %d, %s after the first",
		info.ActivityType.Name, info.Attempt, time.Since(info.ScheduledTime).Round(time.Second))
}

// recordCorrected: the status named a Velero Backup that was not made for this object.
func (b *Activities) recordCorrected(nab *oadpv1alpha1.NonAdminBackup, recorded string) {
	b.record(nab, corev1.EventTypeWarning, activities.EventCorrected, "Refresh",
		"status.veleroBackup named %q, which was not made for this NonAdminBackup; it was ignored and corrected", recorded)
}

// recordProgress writes Events for what Refresh changed that tenants need to know: the end of a backup, or its loss.
func (b *Activities) recordProgress(nab *oadpv1alpha1.NonAdminBackup, before contract.BackupView, o *Objects) {
	after := o.View(b.now())
	if after.AbsenceReported && !before.AbsenceReported {
		b.record(nab, corev1.EventTypeWarning, eventGone, "Refresh", "its Velero Backup no longer exists")
		return
	}
	if o.Backup == nil || before.Velero.MirroredPhase == after.Velero.MirroredPhase || !after.Velero.Finished {
		return
	}
	status := &o.Backup.Status
	var completed time.Time
	if status.CompletionTimestamp != nil {
		completed = status.CompletionTimestamp.Time
	}
	metrics.BackupFinished(string(status.Phase), nab.CreationTimestamp.Time, completed)
	if status.Phase == velerov1.BackupPhaseCompleted {
		b.record(nab, corev1.EventTypeNormal, eventCompleted, "Backup", "Velero completed the backup (%d warnings)", status.Warnings)
		return
	}
	if velero.Cancelled(status.Phase) {
		b.record(nab, corev1.EventTypeWarning, eventCancelled, "Backup",
			"the backup was cancelled in Velero: nothing can be restored from it; create a new NonAdminBackup")
		return
	}
	b.record(nab, corev1.EventTypeWarning, eventFailed, "Backup", "Velero ended the backup in phase %s (%d errors, %d warnings) %s",
		status.Phase, status.Errors, status.Warnings,
		check.Concealed(status.FailureReason)+strings.Join(check.ConcealedAll(status.ValidationErrors), "; "))
}
