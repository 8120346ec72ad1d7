package backup

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// CheckStall checks whether Velero has finished a backup without writing it to the object: Velero retries its patch to the next
// phase for about 40 seconds and then never again (Velero #7207). If the contents have been in the object store for half the
// stall timeout while the Backup is InProgress, CheckStall writes that to the NonAdminBackup. The workflow calls it at every
// quarter of the timeout, so that a stall is reported in time even if one check fails. An error means that it could not be
// checked now.
func (b *Activities) CheckStall(ctx context.Context, step contract.BackupStep) (contract.BackupView, error) {
	ctx, cancel := context.WithTimeout(ctx, velero.StallLookup)
	defer cancel()
	return b.object().Update(ctx, step.Ref, func(o *Objects) error {
		if o.Backup == nil || o.Backup.Status.Phase != velerov1.BackupPhaseInProgress || o.View(b.now()).Velero.Stalled {
			return nil
		}
		age, err := b.contentsAge(ctx, o)
		if err != nil {
			return fmt.Errorf("check for the contents of Velero Backup %s/%s: %w", o.Backup.Namespace, o.Backup.Name, err)
		}
		if age < b.StallTimeout/2 {
			return nil
		}
		changed, err := b.patchStatus(ctx, o.NAB, func() { lifecycle.ApplyStall(o.NAB) })
		if changed {
			b.recorder().Stalled(o.NAB, oadpv1alpha1.MessageVeleroStalled)
		}
		return err
	})
}

// contentsAge is the time since Velero wrote the backup's contents, zero if they are not there.
func (b *Activities) contentsAge(ctx context.Context, o *Objects) (time.Duration, error) {
	return velero.StoredAge(ctx, b.Client, o.Backup.Spec.StorageLocation,
		velero.NewDownloadRequest(o.NAB, o.Backup, velerov1.DownloadTargetKindBackupContents))
}
