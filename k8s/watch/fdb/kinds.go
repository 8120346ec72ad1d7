package fdb

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/watch/watched"
	"holdfast.dev/holdfast/workflows/contract"
)

// Kinds are the kinds of FoundationDB. No other controller serves them: they are never paused. clusters is made by ClusterCache.
func Kinds(env *watched.Env, clusters cache.Cache) []watched.Watcher {
	return []watched.Watcher{newBackups(env, clusters).Kind, newRestores(env, clusters).Kind, newExpiries(env).Kind}
}

// Caches say which objects of other controllers' kinds are cached: the Deployments of backup agents, and the pods that expire
// and delete backups.
func Caches() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: {Label: labelled(fdbv1alpha1.LabelBackup)},
		&corev1.Pod{}:        {Label: labelled(fdbv1alpha1.LabelExpiry)},
	}
}

func labelled(name string) labels.Selector {
	made, err := labels.NewRequirement(name, selection.Exists, nil)
	utilruntime.Must(err) // the label's name is a constant
	return labels.NewSelector().Add(*made)
}

var (
	secrets    = watched.MetadataOf(corev1.SchemeGroupVersion.WithKind("Secret"))
	namespaces = watched.MetadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
)

// judge judges an object of a kind by itself: its workflow is signalled if, as far as the object shows, it has not seen the
// present version, and runs until the object is settled.
func judge[T client.Object](kind string, settled func(T) bool, observed func(T) int64,
) func(context.Context, client.Reader, contract.ObjectRef) (watched.View, error) {
	return func(ctx context.Context, from client.Reader, ref contract.ObjectRef) (watched.View, error) {
		object := watched.Empty[T]()
		found, err := k8s.Get(ctx, from, kind, ref.Namespace, ref.Name, object)
		if err != nil || !found || string(object.GetUID()) != ref.UID {
			return watched.View{}, err
		}
		open := !settled(object)
		unseen := observed(object) != object.GetGeneration() || !object.GetDeletionTimestamp().IsZero()
		return watched.View{Found: true, Due: open && unseen, Open: open}, nil
	}
}
