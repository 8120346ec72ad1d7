package location

import (
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

// Kubernetes Events on a NonAdminBackupStorageLocation that are no condition's reason, best effort.
const (
	eventLocationAvailable   = "LocationAvailable"
	eventLocationUnavailable = "LocationUnavailable"
)

func (l *Activities) record(location *oadpv1alpha1.NonAdminBackupStorageLocation, kind, reason, action, note string) {
	l.Events.Eventf(location, nil, kind, reason, action, "%s", shorten.Text(note, shorten.MaxEventNoteBytes))
}

// recordChanges writes Events for what is new in the status: each condition under its reason, and Velero's status.
func (l *Activities) recordChanges(before, after *oadpv1alpha1.NonAdminBackupStorageLocation) {
	for _, condition := range after.Status.Conditions {
		known := meta.FindStatusCondition(before.Status.Conditions, condition.Type)
		if known != nil && known.Status == condition.Status && known.Reason == condition.Reason && known.Message == condition.Message {
			continue
		}
		kind := corev1.EventTypeNormal
		if condition.Status == metav1.ConditionFalse && condition.Reason != oadpv1alpha1.ReasonBSLSpecApprovalPending {
			kind = corev1.EventTypeWarning
		}
		l.record(after, kind, condition.Reason, condition.Type, condition.Message)
	}
	if before.Status.Phase != after.Status.Phase && after.Status.Phase == oadpv1alpha1.NonAdminPhaseDeleting {
		l.record(after, corev1.EventTypeNormal, activities.EventDeleting, "Delete",
			"the location is being deleted; the backups in it go too, their data stay in the bucket")
	}
	switch phase := veleroPhase(after); {
	case phase == veleroPhase(before):
	case phase == velerov1.BackupStorageLocationPhaseAvailable:
		l.record(after, corev1.EventTypeNormal, eventLocationAvailable, "Validate", "Velero reaches the location")
	case phase == velerov1.BackupStorageLocationPhaseUnavailable:
		l.record(after, corev1.EventTypeWarning, eventLocationUnavailable, "Validate",
			"Velero does not reach the location: "+after.Status.VeleroBackupStorageLocation.Status.Message)
	}
}

func veleroPhase(location *oadpv1alpha1.NonAdminBackupStorageLocation) velerov1.BackupStorageLocationPhase {
	if made := location.Status.VeleroBackupStorageLocation; made != nil && made.Status != nil {
		return made.Status.Phase
	}
	return ""
}

func (l *Activities) recordReleased(location *oadpv1alpha1.NonAdminBackupStorageLocation) {
	l.record(location, corev1.EventTypeNormal, activities.EventReleased, "Delete", "nothing is left of the location in the cluster")
}

// recordRetried: a step failed and has been retried until it succeeded.
func (l *Activities) recordRetried(ref contract.ObjectRef, info activity.Info) {
	location := &oadpv1alpha1.NonAdminBackupStorageLocation{ObjectMeta: metav1.ObjectMeta{
		Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(ref.UID),
	}}
	l.record(location, corev1.EventTypeWarning, activities.EventRetried, "Retry", fmt.Sprintf(
		"%s succeeded at attempt %d, %s after the first",
		info.ActivityType.Name, info.Attempt, time.Since(info.ScheduledTime).Round(time.Second)))
}
