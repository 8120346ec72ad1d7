package backup

import (
	"fmt"
	"time"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

// wait: nothing is due.
var wait activity

// Due is the step that is due, without a name if none is.
func Due(v contract.BackupView) contract.Activity[contract.BackupStep, contract.BackupView] {
	if Settled(v) {
		return wait
	}
	return next(v)
}

// next decides by the order of precedence: a namespace that is being deleted, forceDeleteBackup, deleteBackup,
// a deletion timestamp, create or update.
func next(v contract.BackupView) activity {
	switch {
	case v.BeingDeleted && v.NamespaceTerminating:
		return contract.ReleaseBackup
	case v.ForceDelete:
		return nextForceDeleteStep(v)
	case v.DeleteBackup:
		return nextDeleteStep(v)
	case v.BeingDeleted:
		return nextAPIDeleteStep(v)
	case !v.EverCreated:
		return contract.StartBackup
	case !v.SpecValidated, !v.Finalizer && v.Velero.Exists:
		return contract.AdmitBackup
	}
	return wait // for Velero
}

func nextForceDeleteStep(v contract.BackupView) activity {
	switch {
	case v.Marked != contract.MarkAccepted || !v.BeingDeleted:
		return contract.MarkBackupDeleting
	case v.Velero.Exists || v.DeleteRequest.Exists:
		return contract.DeleteVeleroObjects
	}
	return contract.ReleaseBackup
}

func nextDeleteStep(v contract.BackupView) activity {
	request := v.DeleteRequest
	switch {
	case v.Marked != contract.MarkAccepted || !v.BeingDeleted:
		return contract.MarkBackupDeleting
	case !v.Velero.Exists:
		return contract.ReleaseBackup
	case v.Velero.Unstarted:
		return contract.WithdrawBackup
	case v.Velero.Running:
		return wait // Velero refuses to delete a backup that it is writing
	case request.Attempt == 0:
		return contract.RequestDeletion
	}
	return wait // for Velero's answer, or for the time of the next attempt
}

func nextAPIDeleteStep(v contract.BackupView) activity {
	switch {
	case !v.Velero.Exists:
		return contract.ReleaseBackup
	case v.Marked != contract.MarkPending:
		return contract.MarkBackupDeleting
	case v.LocationGone:
		return contract.DeleteVeleroObjects
	}
	return wait // for Velero to finish
}

// Bounds of the wait between two requests to delete the same backup.
const (
	deletionBackoffFirst = 5 * time.Second
	deletionBackoffCap   = time.Minute
)

// deletionRetryDelay is how long to wait before the deletion is requested again, if Velero's last answer was a refusal or is
// lost; zero if no request is to be repeated.
func deletionRetryDelay(v contract.BackupView) time.Duration {
	request := v.DeleteRequest
	asked := v.DeleteBackup && !v.ForceDelete && v.BeingDeleted && v.Velero.Exists && !v.Velero.Running && !v.Velero.Unstarted
	if !asked || request.Attempt == 0 || (request.Exists && !request.Failed) {
		return 0
	}
	delay := deletionBackoffFirst
	for i := 1; i < request.Attempt && delay < deletionBackoffCap; i++ {
		delay *= 2
	}
	return min(delay, deletionBackoffCap)
}

// awaited says in Markdown what a backup waits for, and who must act.
func awaited(v contract.BackupView) string {
	velero := fmt.Sprintf("Velero Backup `%s`", v.Velero.Name)
	switch {
	case v.Velero.Stalled:
		return fmt.Sprintf("**Stalled:** the object store holds the finished %s, and Velero still calls it %s. "+
			"An administrator should restart Velero%s.", velero, v.Velero.Phase, deletionAfter(v))
	case v.DeleteBackup && v.Velero.Running:
		return fmt.Sprintf("**Deleting:** waits for Velero to finish %s (%s) before it can be deleted.", velero, v.Velero.Phase)
	case v.DeleteBackup && deletionRetryDelay(v) > 0:
		return fmt.Sprintf("**Deleting:** Velero refused attempt %d: %s. Holdfast retries in %s. "+
			"The tenant can set `spec.forceDeleteBackup` to give up the data in the object store.",
			v.DeleteRequest.Attempt, details.OrUnknown(v.DeleteRequest.Error), deletionRetryDelay(v))
	case v.DeleteBackup:
		return fmt.Sprintf("**Deleting:** waits for Velero to delete %s and its data.", velero)
	case v.BeingDeleted:
		return fmt.Sprintf("**Deletion pending:** waits for Velero to finish %s (%s), then for the tenant to choose "+
			"`spec.deleteBackup` or `spec.forceDeleteBackup`.", velero, details.OrUnknown(v.Velero.Phase))
	case v.Velero.Phase == "Deleting":
		return fmt.Sprintf("**Deleting:** Velero deletes %s at somebody else's request.", velero)
	case v.Velero.Running && v.Velero.TotalItems > 0:
		return fmt.Sprintf("**%s:** Velero has backed up %d of %d items of %s.",
			v.Velero.Phase, v.Velero.ItemsBackedUp, v.Velero.TotalItems, velero)
	case v.Velero.Running:
		return fmt.Sprintf("**%s:** Velero works on %s.", v.Velero.Phase, velero)
	case digestsDue(v):
		return fmt.Sprintf("**%s:** Holdfast records digests of the archive of %s, by which a drill finds changes. The pending "+
			"activity shows the last error.", v.Velero.Phase, velero)
	case v.Velero.Phase != "" && v.Velero.Phase != "New" && v.Velero.Phase != "Queued":
		return fmt.Sprintf("**%s:** waits for Velero to finish %s. This release of Holdfast does not know that phase of Velero's; "+
			"an administrator should update it.", v.Velero.Phase, velero)
	}
	return fmt.Sprintf("**Queued:** waits for Velero to start %s.", velero)
}

func deletionAfter(v contract.BackupView) string {
	if v.DeleteBackup || v.BeingDeleted {
		return "; the deletion continues after that"
	}
	return ""
}

// Settled reports whether nothing is left to do for a NonAdminBackup until somebody changes it, its Velero Backup or,
// in BackingOff, something its verdict depends on. The watcher starts no workflow for a settled object, and a workflow
// ends when its object is settled.
func Settled(v contract.BackupView) bool {
	switch {
	case !v.Found, v.BeingDeleted && !v.Finalizer:
		return true
	case v.BeingDeleted && v.NamespaceTerminating, v.ForceDelete, v.DeleteBackup:
		return false
	case v.BeingDeleted:
		return v.Velero.Exists && !v.LocationGone && v.Marked == contract.MarkPending && v.Velero.Finished && Mirrored(v)
	case !v.SpecValidated:
		return false
	case v.Phase == string(oadpv1alpha1.NonAdminPhaseBackingOff) && !v.Accepted:
		return true // left directly for Created, so an accepted spec is still BackingOff for a moment
	case v.AwaitsTurn:
		return true // the queue before Velero starts a workflow when it has its turn
	case !v.EverCreated, v.VerdictDue:
		return false
	case !v.Velero.Exists:
		return v.AbsenceReported
	}
	return v.Finalizer && v.Velero.Finished && Mirrored(v) && !v.Velero.DigestsDue
}

// AwaitsVelero reports whether the workflow has done all that it can until Velero goes on, or digests are recorded, and the
// status repeats Velero's phase.
func AwaitsVelero(v contract.BackupView) bool {
	return v.Velero.Exists && Mirrored(v) && !v.VerdictDue && !v.BeingDeleted && !v.DeleteBackup && next(v) == wait
}

// digestsDue reports whether digests of a complete backup are to be recorded.
func digestsDue(v contract.BackupView) bool {
	return v.Velero.DigestsDue && !v.BeingDeleted && !v.DeleteBackup && !v.ForceDelete
}

// Mirrored reports whether the status repeats Velero's phase.
func Mirrored(v contract.BackupView) bool { return v.Velero.Phase == v.Velero.MirroredPhase }
