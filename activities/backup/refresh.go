package backup

import (
	"context"

	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

// Refresh reads the present state and copies the Velero Backup's status, or reports that it is gone. With the same read it starts
// an object without a status, or one that waits for its turn, and takes the step with which a deletion begins or ends.
func (b *Activities) Refresh(ctx context.Context, o *Objects, step contract.BackupStep) error {
	if (o.NAB.Status.Phase == "" || o.waits()) && !o.DeletionRequested() {
		return b.start(ctx, o, step.Turn)
	}
	if err := b.mirror(ctx, o, step); err != nil {
		return err
	}
	switch backup.Due(o.View(b.now())) {
	case contract.MarkBackupDeleting:
		return b.MarkDeleting(ctx, o, step)
	case contract.ReleaseBackup:
		return b.Release(ctx, o, step)
	}
	return nil
}

// mirror copies the Velero Backup's status, or reports that it is gone.
func (b *Activities) mirror(ctx context.Context, o *Objects, step contract.BackupStep) error {
	before := o.View(b.now())
	if (!before.EverCreated && o.NAB.Status.VeleroBackup == nil) || before.ForceDelete || before.NamespaceTerminating {
		return nil // nothing to copy, or nobody to read it: the object must be released, whatever its status
	}
	recorded := o.BackupName
	if o.NAB.Status.VeleroBackup != nil {
		recorded = owner.Written(o.NAB)
	}
	volumes, err := b.volumes(ctx, step, o, before)
	if err != nil {
		return err
	}
	if err := b.readDrill(ctx, step, o); err != nil {
		return err
	}
	changed, err := b.patchStatus(ctx, o.NAB, func() {
		if before.EverCreated {
			ApplyMirror(o.NAB, o, b.Gatherer.OADPNamespace)
		}
		velero.ApplyVolumes(o.NAB, volumes)
		applyVerified(o)
	})
	if changed {
		b.recordVerified(o)
		b.recordProgress(o.NAB, before, o)
	}
	if changed && o.NAB.Status.VeleroBackup != nil && owner.Written(o.NAB) != recorded {
		b.recorder().Corrected(o.NAB, recorded)
	}
	return err
}

// volumes lists Velero's volume objects for the Backup: none before Velero has started it, and only if the watcher has seen a
// volume that may have progressed.
func (b *Activities) volumes(
	ctx context.Context, step contract.BackupStep, o *Objects, before contract.BackupView,
) (velero.Volumes, error) {
	begun := o.Backup != nil && o.Backup.Status.StartTimestamp != nil
	mayHaveMoved := before.Velero.Phase != before.Velero.MirroredPhase || !velero.VolumesDone(o.NAB)
	if !begun || !step.Volumes || !mayHaveMoved {
		return velero.Volumes{}, nil
	}
	return velero.ReadVolumes(ctx, b.Client, o.Backup)
}
