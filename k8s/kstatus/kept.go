package kstatus

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// blockers are the conditions of a storage location that keep it from use if they are False, in the order in which they
// follow from each other.
var blockers = []oadpv1alpha1.NonAdminCondition{
	oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.NonAdminConditionClusterAdminApproved,
	oadpv1alpha1.NonAdminConditionSpecUpdateApproved, oadpv1alpha1.NonAdminConditionSecretSynced,
	oadpv1alpha1.NonAdminConditionBackupStorageLocationSynced,
}

// location: a NonAdminBackupStorageLocation is ready once Velero can use it. It waits for an administrator's decision.
func location(nabsl *oadpv1alpha1.NonAdminBackupStorageLocation) finding {
	status := nabsl.Status
	if status.Phase == oadpv1alpha1.NonAdminPhaseDeleting {
		return finding{inProgress, ReasonDeleting, "the storage location is being deleted"}
	}
	for _, kind := range blockers {
		condition := meta.FindStatusCondition(status.Conditions, string(kind))
		switch {
		case condition == nil || condition.Status != metav1.ConditionFalse:
		case condition.Reason == oadpv1alpha1.ReasonBSLSpecApprovalPending:
			return finding{inProgress, condition.Reason, condition.Message}
		default:
			return finding{failed, condition.Reason, condition.Message}
		}
	}
	made := status.VeleroBackupStorageLocation
	switch {
	case status.Phase != oadpv1alpha1.NonAdminPhaseCreated || made == nil || made.Status == nil || made.Status.Phase == "":
		return finding{inProgress, ReasonPending, "Velero has not validated the storage location yet"}
	case made.Status.Phase == velerov1.BackupStorageLocationPhaseAvailable:
		return finding{current, string(made.Status.Phase), "Velero can use the storage location"}
	}
	return finding{failed, string(made.Status.Phase), made.Status.Message}
}

// judged: one condition of an object says all.
func judged(conditions []metav1.Condition, kind string, actionNeeded func(reason string) bool) finding {
	condition := meta.FindStatusCondition(conditions, kind)
	switch {
	case condition == nil:
		return finding{inProgress, ReasonPending, "the object is not validated yet"}
	case condition.Status == metav1.ConditionTrue:
		return finding{current, condition.Reason, condition.Message}
	case actionNeeded(condition.Reason) && (condition.Status == metav1.ConditionFalse || kind != ConditionReady):
		return finding{failed, condition.Reason, condition.Message}
	}
	return finding{inProgress, condition.Reason, condition.Message}
}
