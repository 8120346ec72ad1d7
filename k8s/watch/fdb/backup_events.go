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
	"holdfast.dev/holdfast/k8s/watch/watched"
)

// backupEvents: generation, deletion, labels, our finalizers and the cluster's version matter. A change of the status alone is
// our own, and signals no workflow. When the watcher starts, it also starts the workflows of stopped backups with data in the
// store: Temporal may have lost its database while no watcher ran. That costs one short workflow for each.
func (f *backups) backupEvents() watched.Events {
	return watched.Events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watched.Queue) {
			f.Add(q, watched.RequestFor(e.Object))
			if e.IsInInitialList && idleWithData(e.Object.(*fdbv1alpha1.FoundationDBBackup)) {
				f.Add(q, watched.RequestFor(e.Object).Forced(true))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watched.Queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				f.Add(q, watched.RequestFor(e.ObjectOld))
			}
			if watched.Concerns(e.ObjectOld, e.ObjectNew, fdbv1alpha1.FinalizerStop) ||
				watched.Concerns(e.ObjectOld, e.ObjectNew, fdbv1alpha1.FinalizerDelete) || versionOn(e.ObjectOld) != versionOn(e.ObjectNew) {
				f.Add(q, watched.RequestFor(e.ObjectNew).Forced(true))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watched.Queue) { f.Add(q, watched.RequestFor(e.Object)) },
	}
}

func versionOn(object client.Object) string {
	return object.GetAnnotations()[fdbv1alpha1.AnnotationClusterVersion]
}

// agentsEvents: changes by others to the agents' Deployment, and the progress of its rollout.
func (f *backups) agentsEvents() watched.Events {
	enqueue := func(object client.Object, q watched.Queue) {
		owner := metav1.GetControllerOf(object)
		if owner != nil && owner.Kind == fdbv1alpha1.KindFoundationDBBackup {
			f.Add(q, watched.Request{Namespace: object.GetNamespace(), Name: owner.Name, UID: string(owner.UID), Force: true})
		}
	}
	return watched.Events{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*appsv1.Deployment), e.ObjectNew.(*appsv1.Deployment)
			if before.Generation != after.Generation || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
				before.Status.ReadyReplicas != after.Status.ReadyReplicas || before.Status.Replicas != after.Status.Replicas ||
				before.Status.UpdatedReplicas != after.Status.UpdatedReplicas {
				enqueue(after, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(e.Object, q) },
	}
}

// secretEvents: the credentials that a backup names. Only a Secret's metadata are cached here.
func (f *backups) secretEvents() watched.Events {
	enqueue := func(ctx context.Context, secret client.Object, q watched.Queue) {
		f.Each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
			if object.Spec.Credentials.SecretName == secret.GetName() {
				f.Add(q, watched.RequestFor(object).Forced(true))
			}
		}, client.InNamespace(secret.GetNamespace()))
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

// clusterEvents: a cluster's version, and how to connect to it. The requests of this controller name clusters.
func (f *backups) clusterEvents() watched.Events {
	enqueue := func(ctx context.Context, cluster client.Object) {
		f.eachOf(ctx, cluster.GetNamespace(), cluster.GetName(), func(object *fdbv1alpha1.FoundationDBBackup) {
			f.Enqueue(ctx, watched.RequestFor(object).Forced(true))
		})
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) {
			q.Add(watched.Request{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()})
			if !e.IsInInitialList {
				enqueue(ctx, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*foundationdbv1beta2.FoundationDBCluster), e.ObjectNew.(*foundationdbv1beta2.FoundationDBCluster)
			if before.Version() != after.Version() {
				q.Add(watched.Request{Namespace: after.Namespace, Name: after.Name})
			}
			if before.Status.ConnectionString != after.Status.ConnectionString || before.UID != after.UID {
				enqueue(ctx, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ watched.Queue) { enqueue(ctx, e.Object) },
	}
}

// versionEvents: a new backup, or one whose version somebody removed, gets the version.
func (f *backups) versionEvents() watched.Events {
	enqueue := func(object client.Object, q watched.Queue) {
		name := gather.ClusterName(object.(*fdbv1alpha1.FoundationDBBackup))
		q.Add(watched.Request{Namespace: object.GetNamespace(), Name: name})
	}
	return watched.Events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watched.Queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watched.Queue) {
			if versionOn(e.ObjectOld) != versionOn(e.ObjectNew) {
				enqueue(e.ObjectNew, q)
			}
		},
	}
}

// namespaceEvents: once a namespace is being deleted no pod can delete data in it, and our finalizers must not block it. A
// backup that was already being deleted gets no event of its own then.
func (f *backups) namespaceEvents() watched.Events {
	enqueue := func(ctx context.Context, namespace client.Object, q watched.Queue) {
		f.Each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
			f.Add(q, watched.RequestFor(object).Forced(true))
		}, client.InNamespace(namespace.GetName()))
	}
	terminating := func(namespace metav1.Object) bool { return !namespace.GetDeletionTimestamp().IsZero() }
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) {
			if terminating(e.Object) {
				enqueue(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			if terminating(e.ObjectNew) && !terminating(e.ObjectOld) {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
	}
}
