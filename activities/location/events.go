package location

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
)

// Kubernetes Events on a NonAdminBackupStorageLocation that are no condition's reason, best effort.
const (
	eventLocationAvailable   = "LocationAvailable"
	eventLocationUnavailable = "LocationUnavailable"
)

// recordChanges writes Events for what is new in the status: each condition under its reason, and Velero's status.
func (l *Activities) recordChanges(before, after *oadpv1alpha1.NonAdminBackupStorageLocation) {
	for _, condition := range kstatus.Others(after.Status.Conditions) {
		known := meta.FindStatusCondition(before.Status.Conditions, condition.Type)
		if known != nil && known.Status == condition.Status && known.Reason == condition.Reason && known.Message == condition.Message {
			continue
		}
		kind := corev1.EventTypeNormal
		if condition.Status == metav1.ConditionFalse && condition.Reason != oadpv1alpha1.ReasonBSLSpecApprovalPending {
			kind = corev1.EventTypeWarning
		}
		l.Record(after, kind, condition.Reason, condition.Type, "%s", condition.Message)
	}
	if before.Status.Phase != after.Status.Phase && after.Status.Phase == oadpv1alpha1.NonAdminPhaseDeleting {
		l.Record(after, corev1.EventTypeNormal, activities.EventDeleting, "Delete",
			"the location is being deleted; the backups in it go too, their data stay in the bucket")
	}
	switch phase := veleroPhase(after); {
	case phase == veleroPhase(before):
	case phase == velerov1.BackupStorageLocationPhaseAvailable:
		l.Record(after, corev1.EventTypeNormal, eventLocationAvailable, "Validate", "Velero reaches the location")
	case phase == velerov1.BackupStorageLocationPhaseUnavailable:
		l.Record(after, corev1.EventTypeWarning, eventLocationUnavailable, "Validate",
			"Velero does not reach the location: %s", after.Status.VeleroBackupStorageLocation.Status.Message)
	}
}

func veleroPhase(location *oadpv1alpha1.NonAdminBackupStorageLocation) velerov1.BackupStorageLocationPhase {
	if made := location.Status.VeleroBackupStorageLocation; made != nil && made.Status != nil {
		return made.Status.Phase
	}
	return ""
}

func (l *Activities) recordReleased(location *oadpv1alpha1.NonAdminBackupStorageLocation) {
	l.Record(location, corev1.EventTypeNormal, activities.EventReleased, "Delete", "nothing is left of the location in the cluster")
}
