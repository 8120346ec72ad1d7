package backup

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities acts on NonAdminBackups and the Velero objects made for them.
type Activities struct {
	activities.Cluster
	// Gatherer reads through Client.
	Gatherer *Gatherer
	// Buckets reads the files in a tenant's bucket before Velero does: activities/buckets, without the clouds' drivers.
	Buckets interface {
		// AdmitDeletion returns an error while Velero must not read the files of a Backup to delete it.
		AdmitDeletion(ctx context.Context, made *velerov1.Backup) error
	}
	// StallTimeout is --velero-stall-timeout.
	StallTimeout time.Duration
}

// Register registers the activities with a worker under their wire names.
func (b *Activities) Register(registry worker.ActivityRegistry) {
	object := b.object()
	activities.RegisterStep(registry, object, contract.RefreshBackup, b.Refresh)
	activities.RegisterStep(registry, object, contract.StartBackup, b.Start)
	activities.RegisterWhole(registry, object, contract.CheckVeleroStall, b.CheckStall)
	activities.RegisterStep(registry, object, contract.AdmitBackup, b.Admit)
	activities.RegisterStep(registry, object, contract.MarkBackupDeleting, b.MarkDeleting)
	activities.RegisterStep(registry, object, contract.RequestDeletion, b.RequestDeletion)
	activities.RegisterStep(registry, object, contract.WithdrawBackup, b.Withdraw)
	activities.RegisterStep(registry, object, contract.DeleteVeleroObjects, b.DeleteVeleroObjects)
	activities.RegisterStep(registry, object, contract.ReleaseBackup, b.Release)
}

func (b *Activities) object() activities.Object[Objects, contract.BackupView] {
	return activities.Object[Objects, contract.BackupView]{
		Cluster: b.Cluster, Kind: &oadpv1alpha1.NonAdminBackup{}, Resource: oadpv1alpha1.ResourceNonAdminBackups,
		Gather: b.Gatherer.Gather,
		Gone:   func(o *Objects) bool { return o.NAB == nil },
		View:   func(o *Objects) contract.BackupView { return o.View(time.Now()) },
		Found:  func(view contract.BackupView) bool { return view.Found },
	}
}

// patchStatus is PatchStatus for a NonAdminBackup. If the user's spec leaves no room for a copy of it in the status, the rest is
// written.
func (b *Activities) patchStatus(ctx context.Context, nab *oadpv1alpha1.NonAdminBackup, change func()) (bool, error) {
	before := nab.DeepCopy()
	changed, err := b.PatchStatus(ctx, nab, change)
	if !activities.TooLarge(err) || nab.Status.VeleroBackup == nil {
		return changed, err
	}
	status := nab.Status
	before.DeepCopyInto(nab)
	return b.PatchStatus(ctx, nab, func() {
		nab.Status = status
		nab.Status.VeleroBackup.Spec = nil
	})
}
