package fdb

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/watch/watched"
)

func held(object client.Object) bool {
	return controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerAbort)
}

// restoreEvents: generation, deletion, labels and our finalizer matter. A change of the status alone is our own, and signals no
// workflow.
func (f *restores) restoreEvents() watched.Events {
	return watched.Events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watched.Queue) { f.Add(q, watched.RequestFor(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watched.Queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				f.Add(q, watched.RequestFor(e.ObjectOld))
			}
			if watched.Concerns(e.ObjectOld, e.ObjectNew, fdbv1alpha1.FinalizerAbort) {
				f.Add(q, watched.RequestFor(e.ObjectNew).Forced(true))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watched.Queue) { f.Add(q, watched.RequestFor(e.Object)) },
	}
}

// backupEvents: a restore that names a backup waits for that backup's data in the store.
func (f *restores) backupEvents() watched.Events {
	enqueue := func(ctx context.Context, backup client.Object, q watched.Queue) {
		f.eachOpen(ctx, backup.GetNamespace(), func(object *fdbv1alpha1.FoundationDBRestore) {
			if object.Spec.BackupName == backup.GetName() {
				f.Add(q, watched.RequestFor(object).Forced(true))
			}
		})
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) {
			if !e.IsInInitialList {
				enqueue(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*fdbv1alpha1.FoundationDBBackup), e.ObjectNew.(*fdbv1alpha1.FoundationDBBackup)
			if before.UID != after.UID || !equality.Semantic.DeepEqual(placesOf(before), placesOf(after)) ||
				before.Spec.Credentials != after.Spec.Credentials {
				enqueue(ctx, after, q)
			}
		},
	}
}

// placesOf are the URLs of a backup's data in the store, each with whether it can be restored. The latest restorable point is
// left out, since it moves all the time.
func placesOf(backup *fdbv1alpha1.FoundationDBBackup) map[string]bool {
	places := map[string]bool{}
	for _, entry := range backup.Status.Backups {
		places[entry.URL] = entry.LatestRestorable != nil
	}
	return places
}

// secretEvents: the credentials that a restore names, or the backup that it restores. Only a Secret's metadata are cached here.
func (f *restores) secretEvents() watched.Events {
	enqueue := func(ctx context.Context, secret client.Object, q watched.Queue) {
		f.eachOpen(ctx, secret.GetNamespace(), func(object *fdbv1alpha1.FoundationDBRestore) {
			if f.credentialsOf(ctx, object) == secret.GetName() {
				f.Add(q, watched.RequestFor(object).Forced(true))
			}
		})
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) {
			if !e.IsInInitialList {
				enqueue(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
	}
}

// credentialsOf is the name of the Secret that a restore uses; empty if none is known.
func (f *restores) credentialsOf(ctx context.Context, object *fdbv1alpha1.FoundationDBRestore) string {
	if object.Spec.Credentials != nil {
		return object.Spec.Credentials.SecretName
	}
	backup := &fdbv1alpha1.FoundationDBBackup{}
	key := client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.BackupName}
	if err := f.Client.Get(ctx, key, backup); err != nil {
		return "" // not there, or not yet: it will have its own event
	}
	return backup.Spec.Credentials.SecretName
}

// namespaceEvents: our finalizer must not block a namespace that is being deleted. An object that was already being deleted
// gets no event of its own then.
func (f *restores) namespaceEvents() watched.Events {
	enqueue := func(ctx context.Context, namespace client.Object, q watched.Queue) {
		if !namespace.GetDeletionTimestamp().IsZero() {
			f.eachOpen(ctx, namespace.GetName(), func(object *fdbv1alpha1.FoundationDBRestore) {
				f.Add(q, watched.RequestFor(object).Forced(true))
			})
		}
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			if e.ObjectOld.GetDeletionTimestamp().IsZero() {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
	}
}

// clusterEvents: how to connect to the destination and the source, and their versions.
func (f *restores) clusterEvents() watched.Events {
	enqueue := func(ctx context.Context, cluster client.Object) {
		f.eachOpen(ctx, cluster.GetNamespace(), func(object *fdbv1alpha1.FoundationDBRestore) {
			if name := cluster.GetName(); object.Spec.DestinationClusterName == name || object.Spec.SourceClusterName == name {
				f.Enqueue(ctx, watched.RequestFor(object).Forced(true))
			}
		})
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ watched.Queue) {
			if !e.IsInInitialList {
				enqueue(ctx, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ watched.Queue) {
			before, after := e.ObjectOld.(*foundationdbv1beta2.FoundationDBCluster), e.ObjectNew.(*foundationdbv1beta2.FoundationDBCluster)
			if before.Status.ConnectionString != after.Status.ConnectionString || before.Version() != after.Version() ||
				before.UID != after.UID {
				enqueue(ctx, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ watched.Queue) { enqueue(ctx, e.Object) },
	}
}
