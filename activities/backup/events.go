package backup

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/queue"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

func (b *Activities) now() time.Time { return time.Now() }

func (b *Activities) recorder() activities.Recorder {
	return activities.Recorder{Cluster: b.Cluster, Noun: "Backup", Metrics: metrics.Backups}
}

// recordTurn measures how long the object has waited for the turn with which its Velero Backup was made.
func (b *Activities) recordTurn(o *Objects) {
	if o.Rules.Queue.MaxActive > 0 {
		metrics.TurnUsed(activities.TurnLane(contract.PoolBackups, queue.Lane(o.NAB)), o.NAB.CreationTimestamp.Time)
	}
}

func (b *Activities) recordDeletionRequested(nab *oadpv1alpha1.NonAdminBackup, request string, attempt int) {
	if attempt > 1 {
		b.Record(nab, corev1.EventTypeWarning, "DeletionRetried", "Delete",
			"Velero could not delete the backup; the request was sent again (DeleteBackupRequest %s, attempt %d)", request, attempt)
		return
	}
	b.Record(nab, corev1.EventTypeNormal, "DeletionRequested", "Delete",
		"requested the deletion of the backup and its data from Velero (DeleteBackupRequest %s)", request)
}

func (b *Activities) recordReleased(o *Objects) {
	note := "nothing is left of the backup"
	switch {
	case o.NamespaceTerminating:
		note = "the namespace is being deleted; the Velero Backup and its data stay for the administrator"
	case o.NAB.Spec.ForceDeleteBackup:
		note = "the Velero Backup is deleted; its data stay in the object store"
	}
	b.recorder().Released(o.NAB, note)
}

// recordProgress writes Events for what Refresh changed that tenants need to know: the end of a backup, or its loss.
func (b *Activities) recordProgress(nab *oadpv1alpha1.NonAdminBackup, before contract.BackupView, o *Objects) {
	after := o.View(b.now())
	if after.AbsenceReported && !before.AbsenceReported {
		b.recorder().Gone(nab)
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
	b.recorder().Ended(nab, activities.Ended{
		Phase: string(status.Phase), Errors: status.Errors, Warnings: status.Warnings,
		FailureReason: status.FailureReason, ValidationErrors: status.ValidationErrors,
		Cancelled: "nothing can be restored from it; create a new NonAdminBackup",
	})
}
