package backup

import (
	"cmp"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

// QueuePositions estimates, for every Velero Backup of the OADP namespace by name, how many Backups including itself
// Velero must get through until it is done: 1 while it is in progress, 0 when it is finished or Velero has moved past
// it. Where Velero numbers its queue itself (phase Queued, since 1.18) that number counts only those that wait, so those
// that run or are about to are added. Otherwise it is 1 + the unfinished Backups created before it.
//
// Source: seed 000, "Queue Info"; Velero's backup queue controller.
func QueuePositions(backups []velerov1.Backup) map[string]int {
	positions := make(map[string]int, len(backups))
	var ahead []*velerov1.Backup
	started := 0
	for i := range backups {
		phase := backups[i].Status.Phase
		if Finished(phase) || movedPast(phase) {
			positions[backups[i].Name] = 0
			continue
		}
		if phase == velerov1.BackupPhaseInProgress || phase == velerov1.BackupPhaseReadyToStart {
			started++
		}
		ahead = append(ahead, &backups[i])
	}
	slices.SortFunc(ahead, func(a, b *velerov1.Backup) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	older := 0
	for i, backup := range ahead {
		if i > 0 && ahead[i-1].CreationTimestamp.Before(&backup.CreationTimestamp) {
			older = i
		}
		switch {
		case backup.Status.Phase == velerov1.BackupPhaseInProgress:
			positions[backup.Name] = 1
		case backup.Status.Phase == velerov1.BackupPhaseQueued && backup.Status.QueuePosition > 0:
			positions[backup.Name] = backup.Status.QueuePosition + started
		default:
			positions[backup.Name] = older + 1
		}
	}
	return positions
}
