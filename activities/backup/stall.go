package backup

import (
	"context"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// CheckStall checks whether Velero has finished a backup without writing it to the object, and writes that to the
// NonAdminBackup. The workflow calls it at every quarter of the timeout, so that a stall is reported in time even if one check
// fails. An error means that it could not be checked now.
func (b *Activities) CheckStall(ctx context.Context, step contract.BackupStep) (contract.BackupView, error) {
	ctx, cancel := context.WithTimeout(ctx, velero.StallLookup)
	defer cancel()
	return b.object().Update(ctx, step.Ref, func(o *Objects) error {
		if o.Backup == nil || o.View(b.now()).Velero.Stalled {
			return nil
		}
		stalled, err := velero.Stalled(ctx, b.Client, o.NAB, o.Backup, b.StallTimeout)
		if err != nil || !stalled {
			return err
		}
		changed, err := b.patchStatus(ctx, o.NAB, func() { lifecycle.ApplyStall(o.NAB) })
		if changed {
			b.recorder().Stalled(o.NAB, oadpv1alpha1.MessageVeleroStalled)
		}
		return err
	})
}
