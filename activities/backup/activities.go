package backup

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/worker"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities acts on NonAdminBackups and the Velero objects made for them.
type Activities struct {
	// Client reads from and writes to the API server itself.
	Client client.Client
	// Gatherer reads through Client.
	Gatherer *Gatherer
	// Buckets reads the files in a tenant's bucket before Velero does: activities/buckets, without the clouds' drivers.
	Buckets interface {
		// AdmitDeletion returns an error while Velero must not read the files of a Backup to delete it.
		AdmitDeletion(ctx context.Context, made *velerov1.Backup) error
	}
	// Events writes Events for the tenant; best effort.
	Events events.EventRecorder
	// StallTimeout is --velero-stall-timeout.
	StallTimeout time.Duration
	// Paused returns an error while another controller serves these kinds; nothing is done then.
	Paused func() error
}

// Register registers the activities with a worker under their wire names.
func (b *Activities) Register(registry worker.ActivityRegistry) {
	activities.Register(registry, contract.RefreshBackup, activities.Guard(b.Paused, b.Refresh, b.recordRetried))
	activities.Register(registry, contract.StartBackup, activities.Guard(b.Paused, b.Start, b.recordRetried))
	activities.Register(registry, contract.CheckVeleroStall, activities.Guard(b.Paused, b.CheckStall, b.recordRetried))
	activities.Register(registry, contract.AdmitBackup, activities.Guard(b.Paused, b.Admit, b.recordRetried))
	activities.Register(registry, contract.MarkBackupDeleting, activities.Guard(b.Paused, b.MarkDeleting, b.recordRetried))
	activities.Register(registry, contract.RequestDeletion, activities.Guard(b.Paused, b.RequestDeletion, b.recordRetried))
	activities.Register(registry, contract.WithdrawBackup, activities.Guard(b.Paused, b.Withdraw, b.recordRetried))
	activities.Register(registry, contract.DeleteVeleroObjects, activities.Guard(b.Paused, b.DeleteVeleroObjects, b.recordRetried))
	activities.Register(registry, contract.ReleaseBackup, activities.Guard(b.Paused, b.Release, b.recordRetried))
}

// update reads the object and all that belongs to it, calls act, and reads again. After a conflict with another writer it
// starts over. act is not called when the object is gone.
func (b *Activities) update(ctx context.Context, step contract.BackupStep,
	act func(*Objects) error,
) (contract.BackupView, error) {
	gather := func() (*Objects, error) {
		objects, err := b.Gatherer.Gather(ctx, step.Ref)
		if err == nil && objects.NAB != nil {
			objects.NAB = objects.NAB.DeepCopy()
		}
		return objects, err
	}
	ifThere := func(o *Objects) error {
		if o.NAB == nil {
			return activities.ErrGone
		}
		return act(o)
	}
	return activities.Update(oadpv1alpha1.ResourceNonAdminBackups, gather, ifThere,
		func(o *Objects) contract.BackupView { return o.View(time.Now()) })
}

// patchStatus lets change alter the status and sends the difference, if any. It reports whether anything changed.
func (b *Activities) patchStatus(ctx context.Context, nab *oadpv1alpha1.NonAdminBackup, change func()) (bool, error) {
	before := nab.DeepCopy()
	change()
	if equality.Semantic.DeepEqual(before.Status, nab.Status) {
		return false, nil
	}
	err := b.Client.Status().Patch(ctx, nab, k8s.BoundPatch(before))
	if activities.TooLarge(err) && nab.Status.VeleroBackup != nil {
		// The user's spec leaves no room for a copy: the rest of the status is more important.
		nab.Status.VeleroBackup.Spec = nil
		if equality.Semantic.DeepEqual(before.Status, nab.Status) {
			return false, nil
		}
		err = b.Client.Status().Patch(ctx, nab, k8s.BoundPatch(before))
	}
	if err != nil {
		return false, activities.PatchError(nab, err)
	}
	return true, nil
}
