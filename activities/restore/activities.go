package restore

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities acts on NonAdminRestores and the Velero objects made for them.
type Activities struct {
	// Client reads from and writes to the API server itself.
	Client client.Client
	// Gatherer reads through Client.
	Gatherer *Gatherer
	// Buckets reads the files in a tenant's bucket before Velero does: activities/buckets, without the clouds' drivers.
	Buckets interface {
		// Admit returns an error while Velero must not read the files of a Backup to restore it.
		Admit(ctx context.Context, made *velerov1.Backup) error
	}
	// Events writes Events for the tenant; best effort.
	Events events.EventRecorder
	// StallTimeout is --velero-stall-timeout.
	StallTimeout time.Duration
	// Paused returns an error while another controller serves these kinds; nothing is done then.
	Paused func() error
}

// Register registers the activities with a worker under their wire names.
func (r *Activities) Register(registry worker.ActivityRegistry) {
	activities.Register(registry, contract.RefreshRestore, activities.Guard(r.Paused, r.Refresh, r.recordRetried))
	activities.Register(registry, contract.StartRestore, activities.Guard(r.Paused, r.Start, r.recordRetried))
	activities.Register(registry, contract.AdmitRestore, activities.Guard(r.Paused, r.Admit, r.recordRetried))
	activities.Register(registry, contract.CheckRestoreStall, activities.Guard(r.Paused, r.CheckStall, r.recordRetried))
	activities.Register(registry, contract.DeleteRestore, activities.Guard(r.Paused, r.Delete, r.recordRetried))
	activities.Register(registry, contract.ReleaseRestore, activities.Guard(r.Paused, r.Release, r.recordRetried))
}

// update reads the object and all that belongs to it, calls act, and returns the view. After a conflict with another writer it
// starts over. act is not called when the object is gone.
func (r *Activities) update(ctx context.Context, step contract.RestoreStep,
	act func(*Objects) error,
) (contract.RestoreView, error) {
	gather := func() (*Objects, error) {
		objects, err := r.Gatherer.Gather(ctx, step.Ref)
		if err == nil && objects.NAR != nil {
			objects.NAR = objects.NAR.DeepCopy()
		}
		return objects, err
	}
	ifThere := func(o *Objects) error {
		if o.NAR == nil {
			return activities.ErrGone
		}
		return act(o)
	}
	return activities.Update(oadpv1alpha1.ResourceNonAdminRestores, gather, ifThere, (*Objects).View)
}

// patchStatus lets change alter the status and sends the difference, if any. It reports whether anything changed.
func (r *Activities) patchStatus(ctx context.Context, nar *oadpv1alpha1.NonAdminRestore, change func()) (bool, error) {
	return activities.PatchStatus(ctx, r.Client, nar, change)
}

// reread replaces o by the present state, after a write that does not return it.
func (r *Activities) reread(ctx context.Context, step contract.RestoreStep, o *Objects) error {
	present, err := r.Gatherer.Gather(ctx, step.Ref)
	if err != nil {
		return err
	}
	*o = *present
	return nil
}

// Refresh reads the present state and copies the Velero Restore's status, or reports that it is gone. An object that waits for
// its turn is started with the same read.
func (r *Activities) Refresh(ctx context.Context, step contract.RestoreStep) (contract.RestoreView, error) {
	return r.update(ctx, step, func(o *Objects) error {
		if o.waits() {
			return r.start(ctx, o, step.Turn)
		}
		before := o.View()
		if (!before.EverCreated && o.NAR.Status.VeleroRestore == nil) || before.NamespaceTerminating {
			return nil // nothing to copy, or nobody to read it: the object must be released, whatever its status
		}
		recorded := o.RestoreName
		if o.NAR.Status.VeleroRestore != nil {
			recorded = owner.Written(o.NAR)
		}
		volumes, err := r.volumes(ctx, step, o, before)
		if err != nil {
			return err
		}
		changed, err := r.patchStatus(ctx, o.NAR, func() {
			if before.EverCreated {
				lifecycle.ApplyRestore(o.NAR, o.RestoreName, o.Restore, r.Gatherer.OADPNamespace)
			}
			velero.ApplyVolumes(o.NAR, volumes)
		})
		if changed {
			r.recordProgress(o.NAR, before, o)
		}
		if changed && o.NAR.Status.VeleroRestore != nil && owner.Written(o.NAR) != recorded {
			r.recorder().Corrected(o.NAR, recorded)
		}
		return err
	})
}

// volumes lists Velero's volume objects for the Restore: none before Velero has started it, and only if the watcher has seen a
// volume that may have progressed.
func (r *Activities) volumes(
	ctx context.Context, step contract.RestoreStep, o *Objects, before contract.RestoreView,
) (velero.Volumes, error) {
	begun := o.Restore != nil && o.Restore.Status.StartTimestamp != nil
	mayHaveMoved := before.Velero.Phase != before.Velero.MirroredPhase || !velero.VolumesDone(o.NAR)
	if !begun || !step.Volumes || !mayHaveMoved {
		return velero.Volumes{}, nil
	}
	return velero.ReadVolumes(ctx, r.Client, o.Restore)
}

// CheckStall checks whether Velero has finished a restore without writing it to the object, in the same way as for a backup:
// Velero writes the results to the object store before its last patch.
func (r *Activities) CheckStall(ctx context.Context, step contract.RestoreStep) (contract.RestoreView, error) {
	ctx, cancel := context.WithTimeout(ctx, velero.StallLookup)
	defer cancel()
	return r.update(ctx, step, func(o *Objects) error {
		if o.Restore == nil || o.Restore.Status.Phase != velerov1.RestorePhaseInProgress || o.View().Velero.Stalled {
			return nil
		}
		age, err := r.resultsAge(ctx, o)
		if err != nil {
			return fmt.Errorf("check for the results of Velero Restore %s/%s: %w", o.Restore.Namespace, o.Restore.Name, err)
		}
		if age < r.StallTimeout/2 {
			return nil
		}
		changed, err := r.patchStatus(ctx, o.NAR, func() { lifecycle.ApplyStall(o.NAR) })
		if changed {
			r.recorder().Stalled(o.NAR, oadpv1alpha1.MessageVeleroRestoreStalled)
		}
		return err
	})
}

// resultsAge is the time since Velero wrote the restore's results, zero if they do not exist.
func (r *Activities) resultsAge(ctx context.Context, o *Objects) (time.Duration, error) {
	source := &velerov1.Backup{}
	key := client.ObjectKey{Namespace: o.Restore.Namespace, Name: o.Restore.Spec.BackupName}
	if err := r.Client.Get(ctx, key, source); err != nil {
		return 0, fmt.Errorf("get Velero Backup %s: %w", key, err)
	}
	return velero.StoredAge(ctx, r.Client, source.Spec.StorageLocation,
		velero.NewDownloadRequest(o.NAR, o.Restore, velerov1.DownloadTargetKindRestoreResults))
}
