package usage

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/k8s/velero"
)

// Counted is how a quota counts a NonAdminBackup. Our finalizer, which comes before the Velero Backup, shows that it
// takes a place; from then on the object keeps it until its Velero Backup or itself is gone.
func Counted(nab *oadpv1alpha1.NonAdminBackup, clusterID string) quota.Backup {
	counted := quota.Backup{Name: nab.Name, Created: nab.CreationTimestamp.Time}
	accepted := lifecycle.Accepted(nab)
	judged := accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.ObservedGeneration == nab.Generation
	claimed := owner.Claimed(nab)
	ours := owner.Derived(claimed, clusterID, nab)
	switch {
	case lifecycle.EverCreated(nab):
		counted.Stored = accepted == nil || accepted.Reason != oadpv1alpha1.ReasonVeleroBackupNotFound
		counted.Active = counted.Stored && !ended(nab)
		made := meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionQueued))
		if ours && made != nil { // else it was made elsewhere, and found in a bucket
			counted.Begun = made.LastTransitionTime.Time
		}
	case owner.SyncedFrom(nab) != "" && !ours, judged && accepted.Reason == lifecycle.ReasonVeleroBackupRefused && !ours:
	case ours, controllerutil.ContainsFinalizer(nab, oadpv1alpha1.NabFinalizer):
		counted.Stored, counted.Active, counted.Begins = true, true, true
	case lifecycle.DeletionRequested(nab), judged && accepted.Reason != oadpv1alpha1.ReasonQuotaExceeded:
	default:
		counted.Waits = true
	}
	return counted
}

// OverQuota reports whether a quota holds a NonAdminBackup back.
func OverQuota(nab *oadpv1alpha1.NonAdminBackup) bool {
	accepted := lifecycle.Accepted(nab)
	return nab.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff && accepted != nil &&
		accepted.Reason == oadpv1alpha1.ReasonQuotaExceeded
}

// ended: the status shows that Velero has ended the backup.
func ended(nab *oadpv1alpha1.NonAdminBackup) bool {
	made := nab.Status.VeleroBackup
	return made != nil && made.Status != nil && velero.Finished(made.Status.Phase)
}
