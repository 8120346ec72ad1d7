package fdb

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
)

// Kinds are the kinds of FoundationDB. No other controller serves them: they are never paused. clusters is made by ClusterCache.
func Kinds(env *controllers.Env, clusters cache.Cache) []controllers.Watcher {
	return []controllers.Watcher{
		newBackups(env, clusters).Kind, newRestores(env, clusters).Kind, newDrills(env).Kind, newExpiries(env).Kind,
	}
}

// judge judges an object of a kind by itself: its workflow is signalled if, as far as the object shows, it has not seen the
// present version, and runs until the object is settled.
func judge[T client.Object](kind string, settled func(T) bool, observed func(T) int64,
) func(context.Context, client.Reader, contract.ObjectRef) (controllers.View, error) {
	return func(ctx context.Context, from client.Reader, ref contract.ObjectRef) (controllers.View, error) {
		object := controllers.Empty[T]()
		found, err := k8s.Get(ctx, from, kind, ref.Namespace, ref.Name, object)
		if err != nil || !found || string(object.GetUID()) != ref.UID {
			return controllers.View{}, err
		}
		open := !settled(object)
		unseen := observed(object) != object.GetGeneration() || !object.GetDeletionTimestamp().IsZero()
		return controllers.View{Found: true, Due: open && unseen, Open: open}, nil
	}
}
