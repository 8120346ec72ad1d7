package backup

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

// Finished reports whether Velero will not change a Backup in this phase any more by itself.
func Finished(phase velerov1.BackupPhase) bool {
	switch phase {
	case velerov1.BackupPhaseFailedValidation, velerov1.BackupPhaseCompleted,
		velerov1.BackupPhasePartiallyFailed, velerov1.BackupPhaseFailed:
		return true
	}
	return false
}

// movedPast reports whether Velero has turned to other backups although this one is not finished.
func movedPast(phase velerov1.BackupPhase) bool {
	switch phase {
	case velerov1.BackupPhaseWaitingForPluginOperations, velerov1.BackupPhaseWaitingForPluginOperationsPartiallyFailed,
		velerov1.BackupPhaseFinalizing, velerov1.BackupPhaseFinalizingPartiallyFailed, velerov1.BackupPhaseDeleting:
		return true
	}
	return false
}

// running reports whether Velero is at work on the Backup and answers a DeleteBackupRequest with "backup is still in
// progress".
func running(phase velerov1.BackupPhase) bool {
	return phase == velerov1.BackupPhaseInProgress || (movedPast(phase) && phase != velerov1.BackupPhaseDeleting)
}
