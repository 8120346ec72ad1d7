package backup

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

// Finished reports whether Velero will not change a Backup in this phase any more without a request.
func Finished(phase velerov1.BackupPhase) bool {
	switch phase {
	case velerov1.BackupPhaseFailedValidation, velerov1.BackupPhaseCompleted,
		velerov1.BackupPhasePartiallyFailed, velerov1.BackupPhaseFailed:
		return true
	}
	return false
}

// movedPast reports whether Velero has started other backups although this one is not finished.
func movedPast(phase velerov1.BackupPhase) bool {
	switch phase {
	case velerov1.BackupPhaseWaitingForPluginOperations, velerov1.BackupPhaseWaitingForPluginOperationsPartiallyFailed,
		velerov1.BackupPhaseFinalizing, velerov1.BackupPhaseFinalizingPartiallyFailed, velerov1.BackupPhaseDeleting:
		return true
	}
	return false
}

// running reports whether Velero works on the Backup, or is about to, and answers a DeleteBackupRequest with "backup is still
// in progress".
func running(phase velerov1.BackupPhase) bool {
	return phase == velerov1.BackupPhaseReadyToStart || phase == velerov1.BackupPhaseInProgress ||
		(movedPast(phase) && phase != velerov1.BackupPhaseDeleting)
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
