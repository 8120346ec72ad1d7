package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/watch/trim"
	"holdfast.dev/holdfast/workflows/contract"
)

// fdbBackups turns the events of FoundationDBBackups, and of what belongs to them, into signals, and keeps the version of its
// cluster on each. No other controller serves these kinds: it is never paused.
type fdbBackups struct {
	*Watcher
	*intake // its own, not the Watcher's
	// clusters reads FoundationDBClusters from a cache of their own, see addFDBBackups.
	clusters client.Reader
}

// agentsSelector selects the Deployments of backup agents.
func agentsSelector() labels.Selector {
	made, err := labels.NewRequirement(fdbv1alpha1.LabelBackup, selection.Exists, nil)
	utilruntime.Must(err) // the label's name is a constant
	return labels.NewSelector().Add(*made)
}

// addFDBBackups adds the watchers of FoundationDB backups to the manager. FoundationDBClusters have a cache and a controller of
// their own, which wait until the FoundationDB operator has brought the kind: whatever is in the manager's cache, all controllers
// wait for.
func (w *Watcher) addFDBBackups() error {
	clusterCache, err := cache.New(w.manager.GetConfig(), cache.Options{
		Scheme: w.manager.GetScheme(), Mapper: w.manager.GetRESTMapper(),
		DefaultTransform: trim.Object, NewInformer: newInformer, DefaultWatchErrorHandler: w.Refusals.Handle,
	})
	if err != nil {
		return fmt.Errorf("make the cache of FoundationDBClusters: %w", err)
	}
	if err := w.manager.Add(manager.RunnableFunc(clusterCache.Start)); err != nil {
		return fmt.Errorf("add the cache of FoundationDBClusters to the manager: %w", err)
	}
	f := &fdbBackups{Watcher: w, intake: newIntake(), clusters: clusterCache}
	w.fdb.backups = f
	backups := builder.TypedControllerManagedBy[Request](w.manager).
		Named("foundationdbbackup").
		Watches(&fdbv1alpha1.FoundationDBBackup{}, f.backupEvents()).
		Watches(&appsv1.Deployment{}, f.agentsEvents()).
		WatchesMetadata(&corev1.Secret{}, f.secretEvents()).
		WatchesMetadata(&corev1.Namespace{}, f.namespaceEvents())
	if err := f.feed(backups, f.look); err != nil {
		return fmt.Errorf("build the watcher of FoundationDBBackups: %w", err)
	}
	clusters := builder.TypedControllerManagedBy[Request](w.manager).
		Named("foundationdbcluster").
		WatchesRawSource(source.TypedKind[client.Object, Request](
			clusterCache, &foundationdbv1beta2.FoundationDBCluster{}, f.clusterEvents())).
		Watches(&fdbv1alpha1.FoundationDBBackup{}, f.versionEvents()).
		WithOptions(controller.TypedOptions[Request]{CacheSyncTimeout: math.MaxInt64})
	if err := clusters.Complete(reconcile.TypedFunc[Request](f.spreadVersion)); err != nil {
		return fmt.Errorf("build the watcher of FoundationDBClusters: %w", err)
	}
	return w.addFDBRestores(clusterCache)
}

// look signals the workflow of a backup to which something has happened, and otherwise sees to it that the workflow of one that
// is not settled runs. It comes again after the resync interval.
func (f *fdbBackups) look(ctx context.Context, request Request) (reconcile.Result, error) {
	return f.always(request, func(ref contract.ObjectRef, came time.Time) (reconcile.Result, error) {
		object := &fdbv1alpha1.FoundationDBBackup{}
		found, err := k8s.Get(ctx, f.gatherer.Reader, fdbv1alpha1.KindFoundationDBBackup, ref.Namespace, ref.Name, object)
		if err != nil {
			return reconcile.Result{}, err
		}
		measured := func(err error) error { return f.measured(contract.KubernetesKindFDBBackup, ref, came, err) }
		changed := contract.Changed{Reason: "changed"}
		switch here := found && string(object.UID) == ref.UID; {
		case request.Force, here && f.news(object):
			err = measured(f.Workflows.SignalWithStart(ctx, contract.KindFDBBackup, ref, changed))
		case !here:
			gone := contract.Changed{Reason: "deleted"}
			return reconcile.Result{}, measured(f.Workflows.SignalRunning(ctx, contract.KindFDBBackup, ref, gone))
		case !settledFDB(object):
			err = measured(f.Workflows.Ensure(ctx, contract.KindFDBBackup, ref))
		}
		if err != nil || request.Force {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: f.ResyncInterval}, nil
	})
}

// news: the workflow has not seen the object as it is, as far as can be told from it.
func (f *fdbBackups) news(object *fdbv1alpha1.FoundationDBBackup) bool {
	return !settledFDB(object) && (object.Status.ObservedGeneration != object.Generation || !object.DeletionTimestamp.IsZero())
}

func settledFDB(object *fdbv1alpha1.FoundationDBBackup) bool {
	return fdb.Settled((&fdb.Objects{Object: object}).View())
}

// idleWithData: nothing but a signal starts the workflow of the object, and its data are in the store, of which a guard and the
// queue of expirations are to know.
func idleWithData(object *fdbv1alpha1.FoundationDBBackup) bool {
	return settledFDB(object) && len(object.Status.Backups) > 0
}

// each calls do for every FoundationDBBackup in the cache that matches. The objects are the cache's own.
func (f *fdbBackups) each(ctx context.Context, do func(*fdbv1alpha1.FoundationDBBackup), matching ...client.ListOption) {
	eachCached(ctx, f.Watcher, &fdbv1alpha1.FoundationDBBackupList{}, do, matching...)
}

// remindAll has every backup looked at soon, and the workflows of those started that have ended with data in the store: a
// Temporal that has lost its database has lost who uses which container, and whose data expire.
func (f *fdbBackups) remindAll(ctx context.Context) {
	f.each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
		f.enqueue(ctx, requestFor(object).forced(idleWithData(object)))
	})
}

// sweep looks at the backups that the cache does not know yet as they are, see Watcher.sweep.
func (f *fdbBackups) sweep(ctx context.Context) error {
	live := newLive(f.gatherer.Reader)
	err := f.compare(ctx, live, &fdbv1alpha1.FoundationDBBackup{}, &fdbv1alpha1.FoundationDBBackupList{}, "")
	for _, object := range changed[*fdbv1alpha1.FoundationDBBackup](live) {
		if f.news(object) {
			f.enqueue(ctx, requestFor(object).forced(true))
		}
	}
	return err
}

// spreadVersion writes the version that a cluster runs on its backups, which is how they learn of an upgrade. The request names
// the cluster.
func (f *fdbBackups) spreadVersion(ctx context.Context, request Request) (reconcile.Result, error) {
	cluster := &foundationdbv1beta2.FoundationDBCluster{}
	found, err := k8s.Get(ctx, f.clusters, "FoundationDBCluster", request.Namespace, request.Name, cluster)
	if err != nil || !found || cluster.Version() == "" {
		return reconcile.Result{}, err
	}
	var failed error
	f.eachOf(ctx, request.Namespace, request.Name, func(object *fdbv1alpha1.FoundationDBBackup) {
		if object.Annotations[fdbv1alpha1.AnnotationClusterVersion] == cluster.Version() || !object.DeletionTimestamp.IsZero() {
			return
		}
		marked := object.DeepCopy()
		if marked.Annotations == nil {
			marked.Annotations = map[string]string{}
		}
		marked.Annotations[fdbv1alpha1.AnnotationClusterVersion] = cluster.Version()
		err := f.manager.GetClient().Patch(ctx, marked, k8s.BoundPatch(object))
		if client.IgnoreNotFound(err) != nil {
			failed = errors.Join(failed, fmt.Errorf("write the cluster's version on FoundationDBBackup %s: %w",
				client.ObjectKeyFromObject(object), err))
		}
	})
	if failed != nil {
		f.Log.Debug("will write the version again", zap.Error(failed))
	}
	return reconcile.Result{}, failed
}

// eachOf calls do for every backup of a cluster.
func (f *fdbBackups) eachOf(ctx context.Context, namespace, cluster string, do func(*fdbv1alpha1.FoundationDBBackup)) {
	f.each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
		if fdb.ClusterName(object) == cluster {
			do(object)
		}
	}, client.InNamespace(namespace))
}
