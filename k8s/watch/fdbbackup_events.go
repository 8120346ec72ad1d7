package watch

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/fdb"
)

// backupEvents: generation, deletion, labels, our finalizers and the cluster's version matter; a change of status alone is our
// own doing, and wakes no workflow. When the watcher starts, the workflows of those that have ended with data in the store are
// started, too: Temporal may have lost its database, and come back, while nobody watched. That costs one short workflow for each.
func (f *fdbBackups) backupEvents() events {
	return events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			f.add(q, requestFor(e.Object))
			if e.IsInInitialList && idleWithData(e.Object.(*fdbv1alpha1.FoundationDBBackup)) {
				f.add(q, requestFor(e.Object).forced(true))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				f.add(q, requestFor(e.ObjectOld))
			}
			if concerns(e.ObjectOld, e.ObjectNew, fdbv1alpha1.FinalizerStop) ||
				concerns(e.ObjectOld, e.ObjectNew, fdbv1alpha1.FinalizerDelete) || versionOn(e.ObjectOld) != versionOn(e.ObjectNew) {
				f.add(q, requestFor(e.ObjectNew).forced(true))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { f.add(q, requestFor(e.Object)) },
	}
}

func versionOn(object client.Object) string {
	return object.GetAnnotations()[fdbv1alpha1.AnnotationClusterVersion]
}

// agentsEvents: what somebody did to the agents' Deployment, and how far it is rolled out.
func (f *fdbBackups) agentsEvents() events {
	enqueue := func(object client.Object, q queue) {
		owner := metav1.GetControllerOf(object)
		if owner != nil && owner.Kind == fdbv1alpha1.KindFoundationDBBackup {
			f.add(q, Request{Namespace: object.GetNamespace(), Name: owner.Name, UID: string(owner.UID), Force: true})
		}
	}
	return events{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*appsv1.Deployment), e.ObjectNew.(*appsv1.Deployment)
			if before.Generation != after.Generation || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
				before.Status.ReadyReplicas != after.Status.ReadyReplicas || before.Status.Replicas != after.Status.Replicas ||
				before.Status.UpdatedReplicas != after.Status.UpdatedReplicas {
				enqueue(after, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

// secretEvents: the credentials that a backup names. Only a Secret's metadata are known here.
func (f *fdbBackups) secretEvents() events {
	enqueue := func(ctx context.Context, secret client.Object, q queue) {
		f.each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
			if object.Spec.Credentials.SecretName == secret.GetName() {
				f.add(q, requestFor(object).forced(true))
			}
		}, client.InNamespace(secret.GetNamespace()))
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				enqueue(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// clusterEvents: what a cluster runs, and how it is reached. The requests of this controller name clusters.
func (f *fdbBackups) clusterEvents() events {
	tell := func(ctx context.Context, cluster client.Object) {
		f.eachOf(ctx, cluster.GetNamespace(), cluster.GetName(), func(object *fdbv1alpha1.FoundationDBBackup) {
			f.enqueue(ctx, requestFor(object).forced(true))
		})
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			q.Add(Request{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()})
			if !e.IsInInitialList {
				tell(ctx, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*foundationdbv1beta2.FoundationDBCluster), e.ObjectNew.(*foundationdbv1beta2.FoundationDBCluster)
			if before.Version() != after.Version() {
				q.Add(Request{Namespace: after.Namespace, Name: after.Name})
			}
			if before.Status.ConnectionString != after.Status.ConnectionString || before.UID != after.UID {
				tell(ctx, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ queue) { tell(ctx, e.Object) },
	}
}

// versionEvents: a backup that is new, or from which somebody took the version, gets it.
func (f *fdbBackups) versionEvents() events {
	enqueue := func(object client.Object, q queue) {
		name := fdb.ClusterName(object.(*fdbv1alpha1.FoundationDBBackup))
		q.Add(Request{Namespace: object.GetNamespace(), Name: name})
	}
	return events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if versionOn(e.ObjectOld) != versionOn(e.ObjectNew) {
				enqueue(e.ObjectNew, q)
			}
		},
	}
}
