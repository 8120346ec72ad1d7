package fdb

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

// backupEvents: the cluster's version matters, too. When the watcher starts, it also starts the workflows of stopped backups with
// data in the store: Temporal may have lost its database while no watcher ran. That costs one short workflow for each.
func (f *backups) backupEvents() controllers.Events {
	idle := func(_ context.Context, e event.CreateEvent, q controllers.Queue) {
		if e.IsInInitialList && idleWithData(e.Object.(*fdbv1alpha1.FoundationDBBackup)) {
			f.Add(q, controllers.RequestFor(e.Object).Forced(true))
		}
	}
	return controllers.Both(f.OwnEvents(true, otherVersion), controllers.Events{CreateFunc: idle})
}

func otherVersion(before, after client.Object) bool {
	version := fdbv1alpha1.AnnotationClusterVersion
	return before.GetAnnotations()[version] != after.GetAnnotations()[version]
}

// agentsEvents: changes by others to the agents' Deployment, and the progress of its rollout.
func (f *backups) agentsEvents() controllers.Events {
	return controllers.On(controllers.Deleted, func(before, after *appsv1.Deployment) bool {
		return before.Generation != after.Generation || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			before.Status.ReadyReplicas != after.Status.ReadyReplicas || before.Status.Replicas != after.Status.Replicas ||
			before.Status.UpdatedReplicas != after.Status.UpdatedReplicas
	}, func(_ context.Context, object *appsv1.Deployment, q controllers.Queue) {
		owner := metav1.GetControllerOf(object)
		if owner != nil && owner.Kind == fdbv1alpha1.KindFoundationDBBackup {
			f.Add(q, controllers.Request{Namespace: object.Namespace, Name: owner.Name, UID: string(owner.UID), Force: true})
		}
	})
}

// secretEvents: the credentials that a backup names. Only a Secret's metadata are cached here.
func (f *backups) secretEvents() controllers.Events {
	return controllers.On(controllers.CreatedSince|controllers.Deleted, controllers.Rewritten,
		func(ctx context.Context, secret client.Object, q controllers.Queue) {
			f.Each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
				if object.Spec.Credentials.SecretName == secret.GetName() {
					f.Add(q, controllers.RequestFor(object).Forced(true))
				}
			}, client.InNamespace(secret.GetNamespace()))
		})
}

// clusterEvents: a cluster's version, and how to connect to it. The requests of this controller name clusters.
func (f *backups) clusterEvents() controllers.Events {
	type cluster = foundationdbv1beta2.FoundationDBCluster
	version := controllers.On(controllers.Created,
		func(before, after *cluster) bool { return before.Version() != after.Version() },
		func(_ context.Context, of *cluster, q controllers.Queue) {
			q.Add(controllers.Request{Namespace: of.Namespace, Name: of.Name})
		})
	connection := controllers.On(controllers.CreatedSince|controllers.Deleted, func(before, after *cluster) bool {
		return before.Status.ConnectionString != after.Status.ConnectionString || before.UID != after.UID
	}, func(ctx context.Context, of *cluster, _ controllers.Queue) {
		f.eachOf(ctx, of.Namespace, of.Name, func(object *fdbv1alpha1.FoundationDBBackup) {
			f.Enqueue(ctx, controllers.RequestFor(object).Forced(true))
		})
	})
	return controllers.Both(version, connection)
}

// versionEvents: a new backup, or one whose version somebody removed, gets the version.
func (f *backups) versionEvents() controllers.Events {
	return controllers.On(controllers.Created, otherVersion, func(_ context.Context, object client.Object, q controllers.Queue) {
		name := gather.ClusterName(object.(*fdbv1alpha1.FoundationDBBackup))
		q.Add(controllers.Request{Namespace: object.GetNamespace(), Name: name})
	})
}

// namespaceEvents: once a namespace is being deleted no pod can delete data in it, and our finalizers must not block it. A
// backup that was already being deleted gets no event of its own then.
func (f *backups) namespaceEvents() controllers.Events {
	return controllers.On(controllers.Created, terminates, func(ctx context.Context, namespace client.Object, q controllers.Queue) {
		if terminating(namespace) {
			f.Each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
				f.Add(q, controllers.RequestFor(object).Forced(true))
			}, client.InNamespace(namespace.GetName()))
		}
	})
}

func terminating(namespace client.Object) bool { return !namespace.GetDeletionTimestamp().IsZero() }

func terminates(before, after client.Object) bool { return terminating(after) && !terminating(before) }
