package fdb

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

func held(object client.Object) bool {
	return controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerAbort)
}

// backupEvents: a restore that names a backup waits for that backup's data in the store.
func (f *restores) backupEvents() controllers.Events {
	matters := func(before, after *fdbv1alpha1.FoundationDBBackup) bool {
		return before.UID != after.UID || !equality.Semantic.DeepEqual(placesOf(before), placesOf(after)) ||
			before.Spec.Credentials != after.Spec.Credentials
	}
	return controllers.On(controllers.CreatedSince, matters,
		func(ctx context.Context, backup *fdbv1alpha1.FoundationDBBackup, q controllers.Queue) {
			f.eachOpen(ctx, backup.Namespace, func(object *fdbv1alpha1.FoundationDBRestore) {
				if object.Spec.BackupName == backup.Name {
					f.Add(q, controllers.RequestFor(object).Forced(true))
				}
			})
		})
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
func (f *restores) secretEvents() controllers.Events {
	return controllers.On(controllers.CreatedSince|controllers.Deleted, controllers.Rewritten,
		func(ctx context.Context, secret client.Object, q controllers.Queue) {
			f.eachOpen(ctx, secret.GetNamespace(), func(object *fdbv1alpha1.FoundationDBRestore) {
				if f.credentialsOf(ctx, object) == secret.GetName() {
					f.Add(q, controllers.RequestFor(object).Forced(true))
				}
			})
		})
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
func (f *restores) namespaceEvents() controllers.Events {
	return controllers.On(controllers.Created, terminates, func(ctx context.Context, namespace client.Object, q controllers.Queue) {
		if terminating(namespace) {
			f.eachOpen(ctx, namespace.GetName(), func(object *fdbv1alpha1.FoundationDBRestore) {
				f.Add(q, controllers.RequestFor(object).Forced(true))
			})
		}
	})
}

// clusterEvents: how to connect to the destination and the source, and their versions.
func (f *restores) clusterEvents() controllers.Events {
	matters := func(before, after *foundationdbv1beta2.FoundationDBCluster) bool {
		return before.Status.ConnectionString != after.Status.ConnectionString || before.Version() != after.Version() ||
			before.UID != after.UID
	}
	return controllers.On(controllers.CreatedSince|controllers.Deleted, matters,
		func(ctx context.Context, cluster *foundationdbv1beta2.FoundationDBCluster, _ controllers.Queue) {
			f.eachOpen(ctx, cluster.Namespace, func(object *fdbv1alpha1.FoundationDBRestore) {
				if object.Spec.DestinationClusterName == cluster.Name || object.Spec.SourceClusterName == cluster.Name {
					f.Enqueue(ctx, controllers.RequestFor(object).Forced(true))
				}
			})
		})
}
