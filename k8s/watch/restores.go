package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/restore"
	"holdfast.dev/holdfast/workflows/contract"
)

// restores turns the events of NonAdminRestores, and of what belongs to them, into signals.
type restores struct {
	*Watcher
	*intake  // its own, not the Watcher's
	gatherer *restore.Gatherer
	// volumes are the Velero Restores that have PodVolumeRestores or DataDownloads.
	volumes volumes
}

// addRestores adds the watcher of restores to the manager.
func (w *Watcher) addRestores() error {
	r := &restores{
		Watcher: w,
		gatherer: &restore.Gatherer{
			Reader: w.manager.GetClient(), Policy: w.policy, ClusterID: w.ClusterID, OADPNamespace: w.OADPNamespace,
		},
		intake: newIntake(),
	}
	w.restores = r
	controller := builder.TypedControllerManagedBy[Request](w.manager).
		Named("nonadminrestore").
		Watches(&oadpv1alpha1.NonAdminRestore{}, r.restoreEvents()).
		Watches(&velerov1.Restore{}, r.veleroEvents()).
		Watches(&oadpv1alpha1.NonAdminBackup{}, r.backupEvents()).
		Watches(&velerov1.Backup{}, r.veleroBackupEvents()).
		Watches(&velerov1.BackupStorageLocation{}, r.locationEvents()).
		WatchesMetadata(&corev1.Namespace{}, r.namespaceEvents()).
		WatchesMetadata(&velerov1.PodVolumeRestore{}, r.volumeEvents()).
		WatchesMetadata(&velerov2alpha1.DataDownload{}, r.volumeEvents())
	if err := r.feed(controller, r.look); err != nil {
		return fmt.Errorf("build the watcher of NonAdminRestores: %w", err)
	}
	return nil
}

// look signals the workflow of a restore that is not settled. It comes again after the resync interval.
func (r *restores) look(ctx context.Context, request Request) (reconcile.Result, error) {
	return r.attend(r.Watcher, request, func(ref contract.ObjectRef, came time.Time) (reconcile.Result, error) {
		objects, err := gatherRestore(ctx, r.gatherer, ref)
		if err == nil {
			err = r.signal(ctx, ref, objects, request.Force, func(err error) error {
				return r.measured(contract.KubernetesKindRestore, ref, came, err)
			})
		}
		if err != nil || request.Force || objects.NAR == nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: r.ResyncInterval}, nil
	})
}

// signal tells the workflow of a restore that is not settled, or, with force, of any.
func (r *restores) signal(
	ctx context.Context, ref contract.ObjectRef, o *restore.Objects, force bool, measured func(error) error,
) error {
	if !r.mayBegin(Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Force: force}, unstartedRestore(o)) {
		return nil
	}
	if o.NAR == nil && !force {
		return measured(r.Workflows.SignalRunning(ctx, contract.KindRestore, ref, contract.Changed{Reason: "deleted"}))
	}
	hasVolumes, volumeMoved := r.volumes.take(o.RestoreName)
	if !force && restore.Settled(o.View()) && (!volumeMoved || !uncountedRestore(o)) {
		return nil
	}
	changed := contract.Changed{Reason: "changed", Volumes: hasVolumes}
	err := measured(r.Workflows.SignalWithStart(ctx, contract.KindRestore, ref, changed))
	if err != nil && volumeMoved {
		r.volumes.putBack(o.RestoreName)
	}
	return err
}

// uncountedRestore reports whether a restore that has volumes counts none in its status.
func uncountedRestore(o *restore.Objects) bool {
	return o.Restore != nil && o.Restore.Status.StartTimestamp != nil &&
		o.NAR.Status.DataMoverDataDownloads == nil && o.NAR.Status.FileSystemPodVolumeRestores == nil
}

// each calls do for every NonAdminRestore in the cache that matches. The objects are the cache's own.
func (r *restores) each(ctx context.Context, do func(*oadpv1alpha1.NonAdminRestore), matching ...client.ListOption) {
	eachCached(ctx, r.Watcher, &oadpv1alpha1.NonAdminRestoreList{}, do, matching...)
}

// eachBackingOff calls do for every restore whose verdict may have changed.
func (r *restores) eachBackingOff(ctx context.Context, do func(*oadpv1alpha1.NonAdminRestore), matching ...client.ListOption) {
	r.each(ctx, func(nar *oadpv1alpha1.NonAdminRestore) {
		if backingOff(nar) {
			do(nar)
		}
	}, matching...)
}

// lookAgain has a restore looked at soon.
func (r *restores) lookAgain(ctx context.Context) func(*oadpv1alpha1.NonAdminRestore) {
	return func(nar *oadpv1alpha1.NonAdminRestore) { r.enqueue(ctx, requestFor(nar)) }
}

// sweep looks at the restores that the cache does not know yet as they are, see Watcher.sweep, and at those that are BackingOff:
// what their verdict depends on may have changed.
func (r *restores) sweep(ctx context.Context) error {
	if err := r.Paused(); err != nil {
		return err
	}
	live := newLive(r.gatherer.Reader)
	err := r.compare(ctx, live, &velerov1.Restore{}, &velerov1.RestoreList{}, r.OADPNamespace)
	if err == nil {
		err = r.compare(ctx, live, &oadpv1alpha1.NonAdminRestore{}, &oadpv1alpha1.NonAdminRestoreList{}, "")
	}
	if err != nil {
		return err
	}
	narsChanged := changed[*oadpv1alpha1.NonAdminRestore](live)
	concerned := concernedBy(live, narsChanged, k8s.RestoreOrigin, moved[*velerov1.Restore](live))
	kept := slices.ContainsFunc(narsChanged, backingOff)
	r.eachBackingOff(ctx, func(nar *oadpv1alpha1.NonAdminRestore) {
		kept, concerned.keys[client.ObjectKeyFromObject(nar)] = true, true
	})
	if kept {
		if err := r.compareSources(ctx, live); err != nil {
			return err
		}
	}
	gatherer := *r.gatherer
	gatherer.Reader = live
	var failed error
	for _, ref := range concerned.refs(ctx, func() client.Object { return &oadpv1alpha1.NonAdminRestore{} }) {
		o, err := gatherRestore(ctx, &gatherer, ref)
		if err != nil {
			failed = errors.Join(failed, err) // what keeps one object from being judged must not hide the others
			continue
		}
		request := Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Force: true}
		if !restore.Settled(o.View()) && r.mayBegin(request, unstartedRestore(o)) {
			r.enqueue(ctx, request)
		}
	}
	return failed
}

// compareSources compares what a verdict on a restore depends on.
func (r *restores) compareSources(ctx context.Context, live *live) error {
	err := r.compare(ctx, live, &oadpv1alpha1.NonAdminBackup{}, &oadpv1alpha1.NonAdminBackupList{}, "")
	if err == nil {
		err = r.compare(ctx, live, &velerov1.Backup{}, &velerov1.BackupList{}, r.OADPNamespace)
	}
	if err == nil {
		err = r.compare(ctx, live, &velerov1.BackupStorageLocation{}, &velerov1.BackupStorageLocationList{}, r.OADPNamespace)
	}
	return err
}

func backingOff(nar *oadpv1alpha1.NonAdminRestore) bool {
	return nar.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff
}
