package restore

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s"
)

// A phase that is not known here is of a newer Velero. It is shown as it is, and counts as unfinished.

// Finished reports whether Velero will not change a Restore in this phase any more without a request.
func Finished(phase velerov1.RestorePhase) bool {
	switch phase {
	case velerov1.RestorePhaseFailedValidation, velerov1.RestorePhaseCompleted,
		velerov1.RestorePhasePartiallyFailed, velerov1.RestorePhaseFailed:
		return true
	}
	return k8s.Cancelled(phase)
}

// Restored reports whether Velero has restored what it could, so that the finalization may start: all items are restored and
// all plugin operations over.
func Restored(phase velerov1.RestorePhase) bool {
	return phase == velerov1.RestorePhaseCompleted || phase == velerov1.RestorePhasePartiallyFailed
}

// Unwritten reports whether Velero has not written the files of a Restore in this phase yet. Of an unknown phase it knows better.
func Unwritten(phase velerov1.RestorePhase) bool {
	return phase == "" || phase == velerov1.RestorePhaseNew || phase == velerov1.RestorePhaseInProgress || k8s.Cancelling(phase)
}

// atWork reports whether one of Velero's workers, of which there is one per stage, writes to the Restore next. It retries a
// failed write for minutes, whatever the reason.
func atWork(phase velerov1.RestorePhase) bool {
	switch phase {
	case velerov1.RestorePhaseInProgress, velerov1.RestorePhaseFinalizing, velerov1.RestorePhaseFinalizingPartiallyFailed:
		return true
	}
	return k8s.Cancelling(phase)
}

// movedPast reports whether Velero has started other restores although this one is not finished.
func movedPast(phase velerov1.RestorePhase) bool {
	switch phase {
	case velerov1.RestorePhaseWaitingForPluginOperations, velerov1.RestorePhaseWaitingForPluginOperationsPartiallyFailed,
		velerov1.RestorePhaseFinalizing, velerov1.RestorePhaseFinalizingPartiallyFailed:
		return true
	}
	return k8s.Cancelling(phase)
}

// QueuePositions estimates, for every Velero Restore of the OADP namespace by name, how many Restores including itself Velero
// must process until it is done: 1 while it is in progress, 0 when it is finished or Velero has moved past it, otherwise 1 +
// the unfinished Restores created before it.
//
// It is what docs/tenants.md, "Queue position", states for backups.
func QueuePositions(restores []velerov1.Restore) map[string]int {
	var ahead []k8s.Queued
	var done []string
	for i := range restores {
		queued := k8s.Queued{Name: restores[i].Name, Created: restores[i].CreationTimestamp}
		switch phase := restores[i].Status.Phase; {
		case Finished(phase), movedPast(phase):
			done = append(done, queued.Name)
			continue
		case phase == velerov1.RestorePhaseInProgress:
			queued.Position = 1
		}
		ahead = append(ahead, queued)
	}
	positions := k8s.QueuePositions(ahead)
	for _, name := range done {
		positions[name] = 0
	}
	return positions
}
