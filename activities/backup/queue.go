package backup

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Lane returns the lane in which an object waits. Its labels are the tenant's: who removes that of a plan gets no more than by
// making a backup by hand.
func Lane(object metav1.Object) int {
	labels := object.GetLabels()
	switch {
	case labels[holdfastv1alpha1.LabelPlan] == "":
		return contract.LaneHand
	case labels[holdfastv1alpha1.LabelDefaultPlan] != "":
		return contract.LaneDefaultPlan
	}
	return contract.LanePlan
}

// QueuePositions estimates, for every Velero Backup of the OADP namespace by name, how many Backups including itself Velero
// must process until it is done: 1 while it is in progress, 0 when it is finished or Velero has moved past it. If Velero
// numbers its queue itself (phase Queued, since 1.18), that number counts only those that wait, so the running ones and those
// about to run are added. Otherwise it is 1 + the unfinished Backups created before it.
//
// docs/tenants.md, "Queue position", states what tenants see of it. Source: Velero's backup queue controller.
func QueuePositions(backups []velerov1.Backup) map[string]int {
	started := 0
	for i := range backups {
		switch backups[i].Status.Phase {
		case velerov1.BackupPhaseInProgress, velerov1.BackupPhaseReadyToStart:
			started++
		}
	}
	var ahead []k8s.Queued
	var done []string
	for i := range backups {
		status := &backups[i].Status
		queued := k8s.Queued{Name: backups[i].Name, Created: backups[i].CreationTimestamp}
		switch {
		case Finished(status.Phase), movedPast(status.Phase):
			done = append(done, queued.Name)
			continue
		case status.Phase == velerov1.BackupPhaseInProgress:
			queued.Position = 1
		case status.Phase == velerov1.BackupPhaseQueued && status.QueuePosition > 0:
			queued.Position = status.QueuePosition + started
		}
		ahead = append(ahead, queued)
	}
	positions := k8s.QueuePositions(ahead)
	for _, name := range done {
		positions[name] = 0
	}
	return positions
}
