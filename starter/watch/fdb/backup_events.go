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
	"holdfast.dev/holdfast/starter/watch/watched"
)

// backupEvents: the cluster's version matters, too. When the watcher starts, it also starts the workflows of stopped backups with
// data in the store: Temporal may have lost its database while no watcher ran. That costs one short workflow for each.
func (f *backups) backupEvents() watched.Events {
	idle := func(_ context.Context, e event.CreateEvent, q watched.Queue) {
		if e.IsInInitialList && idleWithData(e.Object.(*fdbv1alpha1.FoundationDBBackup)) {
			f.Add(q, watched.RequestFor(e.Object).Forced(true))
		}
	}
	return watched.Both(f.OwnEvents(true, otherVersion), watched.Events{CreateFunc: idle})
}

func otherVersion(before, after client.Object) bool {
	version := fdbv1alpha1.AnnotationClusterVersion
	return before.GetAnnotations()[version] != after.GetAnnotations()[version]
}

// agentsEvents: changes by others to the agents' Deployment, and the progress of its rollout.
func (f *backups) agentsEvents() watched.Events {
	return watched.On(watched.Deleted, func(before, after *appsv1.Deployment) bool {
		return before.Generation != after.Generation || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			before.Status.ReadyReplicas != after.Status.ReadyReplicas || before.Status.Replicas != after.Status.Replicas ||
			before.Status.UpdatedReplicas != after.Status.UpdatedReplicas
	}, func(_ context.Context, object *appsv1.Deployment, q watched.Queue) {
		owner := metav1.GetControllerOf(object)
		if owner != nil && owner.Kind == fdbv1alpha1.KindFoundationDBBackup {
			f.Add(q, watched.Request{Namespace: object.Namespace, Name: owner.Name, UID: string(owner.UID), Force: true})
		}
	})
}

// secretEvents: the credentials that a backup names. Only a Secret's metadata are cached here.
func (f *backups) secretEvents() watched.Events {
	return watched.On(watched.CreatedSince|watched.Deleted, watched.Rewritten,
		func(ctx context.Context, secret client.Object, q watched.Queue) {
			f.Each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
				if object.Spec.Credentials.SecretName == secret.GetName() {
					f.Add(q, watched.RequestFor(object).Forced(true))
				}
			}, client.InNamespace(secret.GetNamespace()))
		})
}

// clusterEvents: a cluster's version, and how to connect to it. The requests of this controller name clusters.
func (f *backups) clusterEvents() watched.Events {
	type cluster = foundationdbv1beta2.FoundationDBCluster
	version := watched.On(watched.Created,
		func(before, after *cluster) bool { return before.Version() != after.Version() },
		func(_ context.Context, of *cluster, q watched.Queue) {
			q.Add(watched.Request{Namespace: of.Namespace, Name: of.Name})
		})
	connection := watched.On(watched.CreatedSince|watched.Deleted, func(before, after *cluster) bool {
		return before.Status.ConnectionString != after.Status.ConnectionString || before.UID != after.UID
	}, func(ctx context.Context, of *cluster, _ watched.Queue) {
		f.eachOf(ctx, of.Namespace, of.Name, func(object *fdbv1alpha1.FoundationDBBackup) {
			f.Enqueue(ctx, watched.RequestFor(object).Forced(true))
		})
	})
	return watched.Both(version, connection)
}

// versionEvents: a new backup, or one whose version somebody removed, gets the version.
func (f *backups) versionEvents() watched.Events {
	return watched.On(watched.Created, otherVersion, func(_ context.Context, object client.Object, q watched.Queue) {
		name := gather.ClusterName(object.(*fdbv1alpha1.FoundationDBBackup))
		q.Add(watched.Request{Namespace: object.GetNamespace(), Name: name})
	})
}

// namespaceEvents: once a namespace is being deleted no pod can delete data in it, and our finalizers must not block it. A
// backup that was already being deleted gets no event of its own then.
func (f *backups) namespaceEvents() watched.Events {
	return watched.On(watched.Created, terminates, func(ctx context.Context, namespace client.Object, q watched.Queue) {
		if terminating(namespace) {
			f.Each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
				f.Add(q, watched.RequestFor(object).Forced(true))
			}, client.InNamespace(namespace.GetName()))
		}
	})
}

func terminating(namespace client.Object) bool { return !namespace.GetDeletionTimestamp().IsZero() }

func terminates(before, after client.Object) bool { return terminating(after) && !terminating(before) }
