package backup

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s"
)

// A phase that is not known here is of a newer Velero. It is shown as it is, and counts as unfinished: so such a backup is never
// good, keeps its turn, and is not deleted by retention. Whether it can be deleted now is Velero's answer to a request.

// Finished reports whether Velero will not change a Backup in this phase any more without a request.
func Finished(phase velerov1.BackupPhase) bool {
	switch phase {
	case velerov1.BackupPhaseFailedValidation, velerov1.BackupPhaseCompleted,
		velerov1.BackupPhasePartiallyFailed, velerov1.BackupPhaseFailed:
		return true
	}
	return k8s.Cancelled(phase)
}

// movedPast reports whether Velero has started other backups although this one is not finished.
func movedPast(phase velerov1.BackupPhase) bool {
	switch phase {
	case velerov1.BackupPhaseWaitingForPluginOperations, velerov1.BackupPhaseWaitingForPluginOperationsPartiallyFailed,
		velerov1.BackupPhaseFinalizing, velerov1.BackupPhaseFinalizingPartiallyFailed, velerov1.BackupPhaseDeleting:
		return true
	}
	return k8s.Cancelling(phase)
}

// running reports whether Velero works on the Backup, or is about to, and answers a DeleteBackupRequest with "backup is still
// in progress".
func running(phase velerov1.BackupPhase) bool {
	return phase == velerov1.BackupPhaseReadyToStart || phase == velerov1.BackupPhaseInProgress ||
		(movedPast(phase) && phase != velerov1.BackupPhaseDeleting)
}

// Unwritten reports whether Velero has not written the files of a Backup in this phase yet. Of an unknown phase it knows better.
func Unwritten(phase velerov1.BackupPhase) bool {
	switch phase {
	case "", velerov1.BackupPhaseNew, velerov1.BackupPhaseQueued, velerov1.BackupPhaseReadyToStart, velerov1.BackupPhaseInProgress:
		return true
	}
	return k8s.Cancelling(phase)
}

// unstarted reports whether Velero has stored nothing of the Backup: it waits, or it was refused.
func unstarted(status *velerov1.BackupStatus) bool {
	if status.StartTimestamp != nil {
		return false
	}
	switch status.Phase {
	case "", velerov1.BackupPhaseNew, velerov1.BackupPhaseQueued, velerov1.BackupPhaseFailedValidation:
		return true
	}
	return false
}

// Unstarted reports whether Velero has stored nothing of a Backup with this status.
func Unstarted(status *velerov1.BackupStatus) bool { return unstarted(status) }
