package velero

import (
	"cmp"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Position is the position in Velero's queue that follows from the phase alone, whatever others there are: 1 while it is in
// progress, 0 when it is finished or Velero has moved past it.
func Position[P ~string](phase P) (position int, known bool) {
	switch StateOf(phase) {
	case StateInProgress:
		return 1, true
	case StateFinalizing, StateDeleting, StateFinished:
		return 0, true
	}
	return 0, false
}

// QueuePositions estimates, for every Velero Backup or Restore of the OADP namespace by name, how many of its kind including
// itself Velero must process until it is done. Where the phase does not say it, it is 1 + the unfinished ones created before it;
// but if Velero numbers its queue itself (phase Queued, since 1.18), that number counts only those that wait, so the running
// ones and those about to run are added.
//
// docs/tenants.md, "Queue position", states what tenants see of it. Source: Velero's backup queue controller.
func QueuePositions[T velerov1.Backup | velerov1.Restore](objects []T) map[string]int {
	positions := make(map[string]int, len(objects))
	ahead := make([]queued, 0, len(objects))
	started := 0
	for i := range objects {
		each := queuedOf(any(&objects[i]))
		if StateOf(each.phase) == StateInProgress || each.phase == velerov1.BackupPhaseReadyToStart {
			started++
		}
		if position, known := Position(each.phase); known && position == 0 {
			positions[each.name] = 0
			continue
		}
		ahead = append(ahead, each)
	}
	slices.SortFunc(ahead, func(a, b queued) int {
		return cmp.Or(a.created.Compare(b.created.Time), cmp.Compare(a.name, b.name))
	})
	older := 0
	for i, each := range ahead {
		if i > 0 && ahead[i-1].created.Before(&each.created) {
			older = i
		}
		position, known := Position(each.phase)
		switch {
		case known:
		case each.phase == velerov1.BackupPhaseQueued && each.number > 0:
			position = each.number + started
		default:
			position = older + 1
		}
		positions[each.name] = position
	}
	return positions
}

// queued is what says where a Backup or Restore is in Velero's queue.
type queued struct {
	name    string
	created metav1.Time
	phase   velerov1.BackupPhase
	number  int // Velero's own, of a Backup that waits
}

func queuedOf(object any) queued {
	if made, is := object.(*velerov1.Restore); is {
		return queued{made.Name, made.CreationTimestamp, velerov1.BackupPhase(made.Status.Phase), 0}
	}
	made := object.(*velerov1.Backup)
	return queued{made.Name, made.CreationTimestamp, made.Status.Phase, made.Status.QueuePosition}
}
