package restore

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities acts on NonAdminRestores and the Velero objects made for them.
type Activities struct {
	activities.Cluster
	// Gatherer reads through Client.
	Gatherer *Gatherer
	// Buckets reads the files in a tenant's bucket before Velero does: activities/buckets, without the clouds' drivers.
	Buckets interface {
		// Admit returns an error while Velero must not read the files of a Backup to restore it.
		Admit(ctx context.Context, made *velerov1.Backup) error
	}
	// StallTimeout is --velero-stall-timeout.
	StallTimeout time.Duration
}

// Register registers the activities with a worker under their wire names.
func (r *Activities) Register(registry worker.ActivityRegistry) {
	object := r.object()
	activities.RegisterStep(registry, object, contract.RefreshRestore, r.Refresh)
	activities.RegisterStep(registry, object, contract.StartRestore, r.Start)
	activities.RegisterStep(registry, object, contract.AdmitRestore, r.Admit)
	activities.RegisterWhole(registry, object, contract.CheckRestoreStall, r.CheckStall)
	activities.RegisterStep(registry, object, contract.DeleteRestore, r.Delete)
	activities.RegisterStep(registry, object, contract.ReleaseRestore, r.Release)
}

func (r *Activities) object() activities.Object[Objects, contract.RestoreView] {
	return activities.Object[Objects, contract.RestoreView]{
		Cluster: r.Cluster, Kind: &oadpv1alpha1.NonAdminRestore{}, Resource: oadpv1alpha1.ResourceNonAdminRestores,
		Gather: r.Gatherer.Gather,
		Gone:   func(o *Objects) bool { return o.NAR == nil },
		View:   (*Objects).View,
		Found:  func(view contract.RestoreView) bool { return view.Found },
	}
}

// Refresh reads the present state and copies the Velero Restore's status, or reports that it is gone. An object that waits for
// its turn is started with the same read.
func (r *Activities) Refresh(ctx context.Context, o *Objects, step contract.RestoreStep) error {
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
	changed, err := r.PatchStatus(ctx, o.NAR, func() {
		if before.EverCreated {
			r.mirror(o)
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
}

// mirror copies the Velero Restore, and announces the finalization once Velero has ended.
func (r *Activities) mirror(o *Objects) {
	lifecycle.ApplyRestore(o.NAR, o.RestoreName, o.Restore, r.Gatherer.OADPNamespace)
	if o.finalizationDue() && o.NAR.DeletionTimestamp.IsZero() {
		lifecycle.ApplyFinalizing(o.NAR)
	}
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

// CheckStall checks whether Velero has finished a restore without writing it to the object, in the same way as for a backup.
func (r *Activities) CheckStall(ctx context.Context, step contract.RestoreStep) (contract.RestoreView, error) {
	ctx, cancel := context.WithTimeout(ctx, velero.StallLookup)
	defer cancel()
	return r.object().Update(ctx, step.Ref, func(o *Objects) error {
		if o.Restore == nil || o.View().Velero.Stalled {
			return nil
		}
		stalled, err := velero.Stalled(ctx, r.Client, o.NAR, o.Restore, r.StallTimeout)
		if err != nil || !stalled {
			return err
		}
		changed, err := r.PatchStatus(ctx, o.NAR, func() { lifecycle.ApplyStall(o.NAR) })
		if changed {
			r.recorder().Stalled(o.NAR, oadpv1alpha1.MessageVeleroRestoreStalled)
		}
		return err
	})
}
