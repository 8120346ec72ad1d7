package fdb

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/starter/watch/watched"
	"holdfast.dev/holdfast/workflows/contract"
)

// Kinds are the kinds of FoundationDB. No other controller serves them: they are never paused. clusters is made by ClusterCache.
func Kinds(env *watched.Env, clusters cache.Cache) []watched.Watcher {
	return []watched.Watcher{newBackups(env, clusters).Kind, newRestores(env, clusters).Kind, newExpiries(env).Kind}
}

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
