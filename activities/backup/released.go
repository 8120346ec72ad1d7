package backup

import (
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/released"
)

// Released returns what the ledger must hold before the NonAdminBackup is let go, or its Velero Backup deleted as an object
// alone, so that the data that may stay are not offered again. It is false when none stay, as far as can be known.
//
// A name counts only if it is proven to be this object's: by its Velero Backup, or because it is derived from the UID.
func (o *Objects) Released(clusterID string, now time.Time) (released.Entry, bool) {
	entry := released.Entry{
		Namespace: o.NAB.Namespace, Name: o.NAB.Name, At: now.UTC().Truncate(time.Second), Reason: released.ByRemoval,
	}
	switch {
	case o.NamespaceTerminating:
		entry.Reason = released.ByNamespace
	case o.NAB.Spec.ForceDeleteBackup:
		entry.Reason = released.ByForce
	case o.LocationGone:
		entry.Reason = released.WithLocation
	}
	if o.Backup != nil {
		entry.Location = o.Backup.Spec.StorageLocation
		return entry, o.Backup.Status.Phase != velerov1.BackupPhaseFailedValidation
	}
	if mirror := o.NAB.Status.VeleroBackup; mirror != nil && mirror.Spec != nil {
		entry.Location = mirror.Spec.StorageLocation
	}
	proven := owner.Derived(o.BackupName, clusterID, o.NAB)
	deletedWithData := o.NAB.Spec.DeleteBackup && !o.NAB.Spec.ForceDeleteBackup
	return entry, proven && !o.Foreign && everCreated(o.NAB) && !deletedWithData && !o.dataGone(now)
}

// dataGone: the status, as Velero said last, leaves no data to come back. A status that somebody has forged concerns nobody
// else.
func (o *Objects) dataGone(now time.Time) bool {
	mirror := o.NAB.Status.VeleroBackup
	if mirror == nil || mirror.Status == nil {
		return false
	}
	expiry := mirror.Status.Expiration
	return unstarted(mirror.Status) || (expiry != nil && expiry.Time.Before(now))
}
