package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/worker"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

// Backups acts on NonAdminBackups and the Velero objects made for them.
type Backups struct {
	// Client reads and writes at the API server itself.
	Client client.Client
	// Gatherer reads through Client.
	Gatherer *backup.Gatherer
	// Events tells the tenant what happened; best effort.
	Events events.EventRecorder
	// StallTimeout is --velero-stall-timeout.
	StallTimeout time.Duration
	// Paused returns an error while another controller serves these kinds; nothing is done then.
	Paused func() error
}

// Register makes the activities known to a worker under their wire names.
func (b *Backups) Register(registry worker.ActivityRegistry) {
	register(registry, contract.RefreshBackup, guard(b.Paused, b.Refresh, b.tellRetried))
	register(registry, contract.StartBackup, guard(b.Paused, b.Start, b.tellRetried))
	register(registry, contract.CheckVeleroStall, guard(b.Paused, b.CheckStall, b.tellRetried))
	register(registry, contract.AdmitBackup, guard(b.Paused, b.Admit, b.tellRetried))
	register(registry, contract.CreateBackup, guard(b.Paused, b.Create, b.tellRetried))
	register(registry, contract.MarkBackupDeleting, guard(b.Paused, b.MarkDeleting, b.tellRetried))
	register(registry, contract.RequestDeletion, guard(b.Paused, b.RequestDeletion, b.tellRetried))
	register(registry, contract.WithdrawBackup, guard(b.Paused, b.Withdraw, b.tellRetried))
	register(registry, contract.DeleteVeleroObjects, guard(b.Paused, b.DeleteVeleroObjects, b.tellRetried))
	register(registry, contract.ReleaseBackup, guard(b.Paused, b.Release, b.tellRetried))
}

// update reads all that concerns the object, lets act look at it and do its part, and reads again. It does so anew when
// a patch met another writer. act is not called when the object is gone.
func (b *Backups) update(ctx context.Context, step contract.BackupStep,
	act func(*backup.Objects) error,
) (contract.BackupView, error) {
	gather := func() (*backup.Objects, error) {
		objects, err := b.Gatherer.Gather(ctx, step.Ref)
		if err == nil && objects.NAB != nil {
			objects.NAB = objects.NAB.DeepCopy()
		}
		return objects, err
	}
	ifThere := func(o *backup.Objects) error {
		if o.NAB == nil {
			return errGone
		}
		return act(o)
	}
	view, err := update(oadpv1alpha1.ResourceNonAdminBackups, gather, ifThere,
		func(o *backup.Objects) contract.BackupView { return o.View(time.Now()) })
	if err != nil {
		return contract.BackupView{}, err
	}
	view.Flow = contract.BackupFlow
	return view, nil
}

// patchStatus lets change alter the status and sends the difference, if any. It reports whether anything changed.
func (b *Backups) patchStatus(ctx context.Context, nab *oadpv1alpha1.NonAdminBackup, change func()) (bool, error) {
	before := nab.DeepCopy()
	change()
	if equality.Semantic.DeepEqual(before.Status, nab.Status) {
		return false, nil
	}
	err := b.Client.Status().Patch(ctx, nab, k8s.BoundPatch(before))
	if tooLarge(err) && nab.Status.VeleroBackup != nil {
		// The user's spec leaves no room for a copy: what must be said is worth more.
		nab.Status.VeleroBackup.Spec = nil
		if equality.Semantic.DeepEqual(before.Status, nab.Status) {
			return false, nil
		}
		err = b.Client.Status().Patch(ctx, nab, k8s.BoundPatch(before))
	}
	if err != nil {
		return false, patchError(nab, err)
	}
	return true, nil
}
