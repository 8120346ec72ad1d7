package backup

import (
	"time"

	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
)

// Released returns the ledger entry that must exist before the NonAdminBackup is released, or its Velero Backup deleted without
// its data, so that the data are not offered again. It is false if, as far as is known, no data stay.
//
// A name counts only if it is proven to be this object's: by its Velero Backup, or because it is derived from the UID.
func (o *Objects) Released(clusterID string, now time.Time) (ledger.Entry, bool) {
	entry := ledger.Entry{
		Namespace: o.NAB.Namespace, Name: o.NAB.Name, At: now.UTC().Truncate(time.Second), Reason: ledger.ByRemoval,
	}
	switch {
	case o.NamespaceTerminating:
		entry.Reason = ledger.ByNamespace
	case o.NAB.Spec.ForceDeleteBackup:
		entry.Reason = ledger.ByForce
	case o.LocationGone:
		entry.Reason = ledger.WithLocation
	}
	if o.Backup != nil {
		entry.Location = o.Backup.Spec.StorageLocation
		return entry, !velero.Refused(o.Backup.Status.Phase)
	}
	if mirror := o.NAB.Status.VeleroBackup; mirror != nil && mirror.Spec != nil {
		entry.Location = mirror.Spec.StorageLocation
	}
	proven := owner.Derived(o.BackupName, clusterID, o.NAB)
	deletedWithData := o.NAB.Spec.DeleteBackup && !o.NAB.Spec.ForceDeleteBackup
	return entry, proven && !o.Foreign && lifecycle.EverCreated(o.NAB) && !deletedWithData && !o.dataGone(now)
}

// dataGone: by Velero's last status no data are left. A forged status harms only its own tenant.
func (o *Objects) dataGone(now time.Time) bool {
	mirror := o.NAB.Status.VeleroBackup
	if mirror == nil || mirror.Status == nil {
		return false
	}
	expiry := mirror.Status.Expiration
	return velero.Unstarted(mirror.Status) || (expiry != nil && expiry.Time.Before(now))
}
