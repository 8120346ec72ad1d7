package watch

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	fdbrestore "holdfast.dev/holdfast/k8s/fdb/restore"
	"holdfast.dev/holdfast/workflows/contract"
)

// fdbRestores turns the events of FoundationDBRestores, and of what belongs to them, into signals. No other controller serves
// these kinds: it is never paused.
type fdbRestores struct {
	*Watcher
	*intake // its own, not the Watcher's
}

// addFDBRestores adds the watchers of FoundationDB restores to the manager. clusters is the cache of FoundationDBClusters, whose
// controller waits for that kind alone, see addFDBBackups.
func (w *Watcher) addFDBRestores(clusters cache.Cache) error {
	f := &fdbRestores{Watcher: w, intake: newIntake()}
	w.fdb.restores = f
	restores := builder.TypedControllerManagedBy[Request](w.manager).
		Named("foundationdbrestore").
		Watches(&fdbv1alpha1.FoundationDBRestore{}, f.restoreEvents()).
		Watches(&fdbv1alpha1.FoundationDBBackup{}, f.backupEvents()).
		WatchesMetadata(&corev1.Secret{}, f.secretEvents()).
		WatchesMetadata(&corev1.Namespace{}, f.namespaceEvents())
	if err := f.feed(restores, f.look); err != nil {
		return fmt.Errorf("build the watcher of FoundationDBRestores: %w", err)
	}
	ofClusters := builder.TypedControllerManagedBy[Request](w.manager).
		Named("foundationdbrestore-cluster").
		WatchesRawSource(source.TypedKind[client.Object, Request](
			clusters, &foundationdbv1beta2.FoundationDBCluster{}, f.clusterEvents())).
		WithOptions(controller.TypedOptions[Request]{CacheSyncTimeout: math.MaxInt64})
	nothing := func(context.Context, Request) (reconcile.Result, error) { return reconcile.Result{}, nil } // its events say all
	if err := ofClusters.Complete(reconcile.TypedFunc[Request](nothing)); err != nil {
		return fmt.Errorf("build the watcher of the FoundationDBClusters of restores: %w", err)
	}
	return nil
}

// look signals the workflow of a restore to which something has happened, and otherwise sees to it that the workflow of one that
// is not settled runs. It comes again after the resync interval.
func (f *fdbRestores) look(ctx context.Context, request Request) (reconcile.Result, error) {
	return f.always(request, func(ref contract.ObjectRef, came time.Time) (reconcile.Result, error) {
		object := &fdbv1alpha1.FoundationDBRestore{}
		found, err := k8s.Get(ctx, f.gatherer.Reader, fdbv1alpha1.KindFoundationDBRestore, ref.Namespace, ref.Name, object)
		if err != nil {
			return reconcile.Result{}, err
		}
		measured := func(err error) error { return f.measured(contract.KubernetesKindFDBRestore, ref, came, err) }
		changed := contract.Changed{Reason: "changed"}
		switch here := found && string(object.UID) == ref.UID; {
		case request.Force, here && fdbRestoreNews(object):
			err = measured(f.Workflows.SignalWithStart(ctx, contract.KindFDBRestore, ref, changed))
		case !here:
			gone := contract.Changed{Reason: "deleted"}
			return reconcile.Result{}, measured(f.Workflows.SignalRunning(ctx, contract.KindFDBRestore, ref, gone))
		case !settledFDBRestore(object):
			err = measured(f.Workflows.Ensure(ctx, contract.KindFDBRestore, ref))
		}
		if err != nil || request.Force {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: f.ResyncInterval}, nil
	})
}

// fdbRestoreNews: the workflow has not seen the object as it is, as far as can be told from it.
func fdbRestoreNews(object *fdbv1alpha1.FoundationDBRestore) bool {
	return !settledFDBRestore(object) &&
		(object.Status.ObservedGeneration != object.Generation || !object.DeletionTimestamp.IsZero())
}

// settledFDBRestore judges by the object alone.
func settledFDBRestore(object *fdbv1alpha1.FoundationDBRestore) bool {
	return fdbrestore.Settled(contract.FDBRestoreView{
		Found: true, BeingDeleted: !object.DeletionTimestamp.IsZero(), Held: heldFDBRestore(object),
		Observed: object.Status.ObservedGeneration == object.Generation, State: object.Status.State,
	})
}

// each calls do for every FoundationDBRestore in the cache that matches. The objects are the cache's own.
func (f *fdbRestores) each(ctx context.Context, do func(*fdbv1alpha1.FoundationDBRestore), matching ...client.ListOption) {
	eachCached(ctx, f.Watcher, &fdbv1alpha1.FoundationDBRestoreList{}, do, matching...)
}

// eachOpen calls do for every FoundationDBRestore of a namespace that is not settled.
func (f *fdbRestores) eachOpen(ctx context.Context, namespace string, do func(*fdbv1alpha1.FoundationDBRestore)) {
	f.each(ctx, func(object *fdbv1alpha1.FoundationDBRestore) {
		if !settledFDBRestore(object) {
			do(object)
		}
	}, client.InNamespace(namespace))
}

// lookAtAll has every restore looked at soon.
func (f *fdbRestores) lookAtAll(ctx context.Context) {
	f.each(ctx, func(object *fdbv1alpha1.FoundationDBRestore) { f.enqueue(ctx, requestFor(object)) })
}

// sweep looks at the restores that the cache does not know yet as they are, see Watcher.sweep.
func (f *fdbRestores) sweep(ctx context.Context) error {
	live := newLive(f.gatherer.Reader)
	err := f.compare(ctx, live, &fdbv1alpha1.FoundationDBRestore{}, &fdbv1alpha1.FoundationDBRestoreList{}, "")
	for _, object := range changed[*fdbv1alpha1.FoundationDBRestore](live) {
		if fdbRestoreNews(object) {
			f.enqueue(ctx, requestFor(object).forced(true))
		}
	}
	return err
}
