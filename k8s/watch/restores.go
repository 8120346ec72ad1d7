package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/restore"
	"holdfast.dev/holdfast/workflows/contract"
)

// restores turns the events of NonAdminRestores, and of what belongs to them, into signals.
type restores struct {
	*Watcher
	gatherer *restore.Gatherer
	requests chan event.TypedGenericEvent[Request]
	arrivals arrivals
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
		requests: make(chan event.TypedGenericEvent[Request], cap(w.requests)),
	}
	w.restores = r
	err := builder.TypedControllerManagedBy[Request](w.manager).
		Named("nonadminrestore").
		Watches(&oadpv1alpha1.NonAdminRestore{}, r.restoreEvents()).
		Watches(&velerov1.Restore{}, r.veleroEvents()).
		Watches(&oadpv1alpha1.NonAdminBackup{}, r.backupEvents()).
		Watches(&velerov1.Backup{}, r.veleroBackupEvents()).
		Watches(&velerov1.BackupStorageLocation{}, r.locationEvents()).
		WatchesMetadata(&corev1.Namespace{}, r.namespaceEvents()).
		WatchesMetadata(&velerov1.PodVolumeRestore{}, r.volumeEvents()).
		WatchesMetadata(&velerov2alpha1.DataDownload{}, r.volumeEvents()).
		WatchesRawSource(source.TypedChannel(r.requests, passOn(r.add))).
		WithOptions(controller.TypedOptions[Request]{
			MaxConcurrentReconciles: concurrentReconciles,
			CacheSyncTimeout:        cacheSyncTimeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Request](retryFirst, retryCap),
		}).
		Complete(reconcile.TypedFunc[Request](r.look))
	if err != nil {
		return fmt.Errorf("build the watcher of NonAdminRestores: %w", err)
	}
	return nil
}

// look signals the workflow of a restore that is not settled. It comes again after the resync interval.
func (r *restores) look(ctx context.Context, request Request) (reconcile.Result, error) {
	came := r.arrivals.take(request)
	if err := r.Paused(); err != nil {
		r.Log.Debug("paused", zap.Error(err))
		return reconcile.Result{RequeueAfter: pausedInterval}, nil
	}
	ref := contract.ObjectRef{Namespace: request.Namespace, Name: request.Name, UID: request.UID}
	objects, err := r.gatherer.Gather(ctx, ref)
	if err == nil {
		err = r.signal(ctx, ref, objects, request.Force, func(err error) error {
			return r.measured(contract.KubernetesKindRestore, ref, came, err)
		})
	}
	if err != nil {
		r.arrivals.note(request, came) // tried again: the event still waits for its signal
		return reconcile.Result{}, err
	}
	if request.Force || objects.NAR == nil {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: r.ResyncInterval}, nil
}

// signal tells the workflow of a restore that is not settled, or, with force, of any.
func (r *restores) signal(
	ctx context.Context, ref contract.ObjectRef, o *restore.Objects, force bool, measured func(error) error,
) error {
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
	list := &oadpv1alpha1.NonAdminRestoreList{}
	if err := r.gatherer.Reader.List(ctx, list, append(matching, client.UnsafeDisableDeepCopy)...); err != nil {
		r.Log.Error("list NonAdminRestores in the cache", zap.Error(err))
		return
	}
	for i := range list.Items {
		do(&list.Items[i])
	}
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
	return func(nar *oadpv1alpha1.NonAdminRestore) { r.enqueue(ctx, requestForRestore(nar)) }
}

// enqueue hands a request to the workqueue, which takes it unless the manager stops.
func (r *restores) enqueue(ctx context.Context, request Request) {
	select {
	case r.requests <- event.TypedGenericEvent[Request]{Object: request}:
	case <-ctx.Done():
	}
}

// sweep judges every restore by live lists, while the informers may still be silent after an outage.
func (r *restores) sweep(ctx context.Context) error {
	if err := r.Paused(); err != nil {
		return err
	}
	live := newLiveLists(r.gatherer.Reader)
	err := r.list(ctx, live, &velerov1.Restore{}, &velerov1.RestoreList{}, r.OADPNamespace)
	if err == nil {
		err = r.list(ctx, live, &oadpv1alpha1.NonAdminRestore{}, &oadpv1alpha1.NonAdminRestoreList{}, "")
	}
	if err == nil && slices.ContainsFunc(listed[*oadpv1alpha1.NonAdminRestore](live), backingOff) {
		err = r.listSources(ctx, live)
	}
	if err != nil {
		return err
	}
	gatherer := *r.gatherer
	gatherer.Reader = live
	var failed error
	for _, nar := range listed[*oadpv1alpha1.NonAdminRestore](live) {
		ref := contract.ObjectRef{Namespace: nar.Namespace, Name: nar.Name, UID: string(nar.UID)}
		o, err := gatherer.Gather(ctx, ref)
		if err != nil {
			failed = errors.Join(failed, err) // what keeps one object from being judged must not hide the others
			continue
		}
		if !restore.Settled(o.View()) {
			request := requestForRestore(nar)
			request.Force = true
			r.enqueue(ctx, request)
		}
	}
	return failed
}

// listSources adds what a verdict on a restore depends on.
func (r *restores) listSources(ctx context.Context, live *liveLists) error {
	err := r.list(ctx, live, &oadpv1alpha1.NonAdminBackup{}, &oadpv1alpha1.NonAdminBackupList{}, "")
	if err == nil {
		err = r.list(ctx, live, &velerov1.Backup{}, &velerov1.BackupList{}, r.OADPNamespace)
	}
	if err == nil {
		err = r.list(ctx, live, &velerov1.BackupStorageLocation{}, &velerov1.BackupStorageLocationList{}, r.OADPNamespace)
	}
	return err
}

func (r *restores) list(
	ctx context.Context, live *liveLists, kind client.Object, list client.ObjectList, namespace string,
) error {
	live.covers(kind)
	return r.listLive(ctx, list, live.take, client.InNamespace(namespace))
}

func backingOff(nar *oadpv1alpha1.NonAdminRestore) bool {
	return nar.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff
}

// requestForRestore is the request for an object that was read.
func requestForRestore(nar *oadpv1alpha1.NonAdminRestore) Request {
	return Request{Namespace: nar.Namespace, Name: nar.Name, UID: string(nar.UID)}
}
