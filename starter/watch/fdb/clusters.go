package fdb

import (
	"context"
	"errors"
	"fmt"
	"math"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

// +kubebuilder:rbac:groups=apps.foundationdb.org,resources=foundationdbclusters,verbs=list;watch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups,verbs=patch

// ClusterCache is a cache of FoundationDBClusters alone. It waits until the FoundationDB operator has installed the kind; all
// controllers would wait for a kind in the manager's cache.
func ClusterCache(mgr manager.Manager, refusals *caches.Refusals) (cache.Cache, error) {
	options := caches.Options([]*caches.Kind{Clusters}, "", refusals)
	options.Scheme, options.Mapper, options.DefaultWatchErrorHandler = mgr.GetScheme(), mgr.GetRESTMapper(), onceServed
	clusters, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("make the cache of FoundationDBClusters: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(clusters.Start)); err != nil {
		return nil, fmt.Errorf("add the cache of FoundationDBClusters to the manager: %w", err)
	}
	return clusters, nil
}

// onceServed handles errors of a watch, except that the API server does not serve the kind: the operator is not installed, or not
// yet.
func onceServed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsNotFound(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}

// clusterController waits for the kind FoundationDBCluster without a limit, and nothing waits for the controller.
func clusterController(
	mgr manager.Manager, name string, clusters cache.Cache, events controllers.Events,
) *builder.TypedBuilder[controllers.Request] {
	return builder.TypedControllerManagedBy[controllers.Request](mgr).
		Named(name).
		WatchesRawSource(source.TypedKind[client.Object, controllers.Request](
			clusters, Clusters.Object, events)).
		WithOptions(controller.TypedOptions[controllers.Request]{CacheSyncTimeout: math.MaxInt64})
}

func complete(of *builder.TypedBuilder[controllers.Request], do reconcile.TypedFunc[controllers.Request]) error {
	if err := of.Complete(do); err != nil {
		return fmt.Errorf("build a watcher of FoundationDBClusters: %w", err)
	}
	return nil
}

// addClusters adds the controller that keeps the cluster's version on each backup.
func (f *backups) addClusters(clusters cache.Cache) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		return complete(clusterController(mgr, "foundationdbcluster", clusters, f.clusterEvents()).
			Watches(fdbBackups.Object, f.versionEvents()), f.spreadVersion)
	}
}

// addClusters adds the controller of the clusters that restores name. Its events do all the work.
func (f *restores) addClusters(clusters cache.Cache) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		nothing := func(context.Context, controllers.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }
		return complete(clusterController(mgr, "foundationdbrestore-cluster", clusters, f.clusterEvents()), nothing)
	}
}

// spreadVersion writes the version of a cluster on its backups, which learn of an upgrade by it. The request names the cluster.
func (f *backups) spreadVersion(ctx context.Context, request controllers.Request) (reconcile.Result, error) {
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
		err := f.Client.Patch(ctx, marked, k8s.BoundPatch(object))
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
func (f *backups) eachOf(ctx context.Context, namespace, cluster string, do func(*fdbv1alpha1.FoundationDBBackup)) {
	f.Each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
		if gather.ClusterName(object) == cluster {
			do(object)
		}
	}, client.InNamespace(namespace))
}
