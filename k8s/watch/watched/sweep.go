package watched

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/watch/caches"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// Sweep says how to find the objects of a kind for which the cache is out of date.
type Sweep struct {
	// Compared are the kinds that are compared with the API server, in this order.
	Compared []Compared
	// Also adds objects that do not differ. It may compare more.
	Also func(ctx context.Context, live *caches.Live, add func(contract.ObjectRef)) error
	// AtOnce signals workflows by what was read live. Otherwise a request goes into the workqueue, which retries.
	AtOnce bool
}

// Compared is a kind of objects in a namespace, and which object of ours a difference in one concerns.
type Compared struct {
	Of client.Object
	In string
	// Concerns returns a reference; without a UID it stands for any object of the name.
	Concerns func(client.Object) (contract.ObjectRef, bool)
}

// Itself is for objects of the kind itself.
func Itself(object client.Object) (contract.ObjectRef, bool) {
	return contract.ObjectRef{Namespace: object.GetNamespace(), Name: object.GetName()}, true
}

// OriginBy is for objects that were made for one of the kind.
func OriginBy(origin owner.Origin) func(client.Object) (contract.ObjectRef, bool) {
	return func(made client.Object) (contract.ObjectRef, bool) {
		key, named := origin.Hint(made)
		return contract.ObjectRef{Namespace: key.Namespace, Name: key.Name}, named
	}
}

// Recover implements Watcher. Objects that are the same as in the cache were signalled before.
func (k *Kind[T]) Recover(ctx context.Context) error {
	if len(k.Sweep.Compared) == 0 {
		return nil
	}
	if err := k.paused(); err != nil {
		return err
	}
	live := caches.NewLive(caches.Source{
		Cache: k.Client, API: k.API, Refused: k.Refused, Trim: caches.Transform(k.Watched()), Log: k.Log,
	})
	for _, each := range k.Sweep.Compared {
		if err := live.Compare(ctx, each.Of, each.In); err != nil {
			return err
		}
	}
	refs := map[contract.ObjectRef]bool{}
	add := func(ref contract.ObjectRef) { refs[ref] = true }
	for _, each := range k.Sweep.Compared {
		for _, object := range live.Moved(each.Of) {
			if ref, ours := each.Concerns(object); ours {
				add(ref)
			}
		}
	}
	if k.Sweep.Also != nil {
		if err := k.Sweep.Also(ctx, live, add); err != nil {
			return err
		}
	}
	var failed error
	for ref := range refs {
		failed = errors.Join(failed, k.judgeLive(ctx, live, ref)) // an object that cannot be judged must not hide the others
	}
	return failed
}

// judgeLive judges one object as it is at the API server.
func (k *Kind[T]) judgeLive(ctx context.Context, live *caches.Live, ref contract.ObjectRef) error {
	if ref.UID == "" {
		object := Empty[T]()
		err := live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, object)
		if ref.UID = string(object.GetUID()); err != nil || ref.UID == "" {
			return client.IgnoreNotFound(err)
		}
	}
	view, err := k.Judge(ctx, live, ref)
	if err != nil {
		return err
	}
	if k.Sweep.AtOnce {
		direct := func(_ string, send func(connect.Workflows) error) error { return send(k.Workflows) }
		return k.message(ctx, ref, view, false, direct)
	}
	request := requestOf(ref).Forced(true)
	if view.Due && k.mayStart(request, view.Unstarted) {
		k.Enqueue(ctx, request)
	}
	return nil
}
