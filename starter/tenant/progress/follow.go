package progress

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrGone says that the object was deleted. Another of its name is not it.
var ErrGone = errors.New("it is gone")

// Follow reads an object, of the type that list has, until read says that it is over, and shows each state. It makes up for
// interruptions of the watch. It returns the last state, with the error of ctx if that ends before, or ErrGone if the object is
// deleted before.
func Follow(
	ctx context.Context, from client.WithWatch, object client.Object, list client.ObjectList,
	read func(client.Object) State, show func(State),
) (State, error) {
	selected := func(options metav1.ListOptions) *client.ListOptions {
		named := fields.OneTermEqualSelector(metav1.ObjectNameField, object.GetName())
		return &client.ListOptions{Namespace: object.GetNamespace(), FieldSelector: named, Raw: &options}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	allowed := func(err error) error { // an informer repeats for ever what is forbidden
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			end(fmt.Errorf("follow %s: %w", object.GetName(), err))
		}
		return err
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.ResourceVersion == "0" { // a cache of the API server may lack what was just created or changed
				options.ResourceVersion = ""
			}
			found := list.DeepCopyObject().(client.ObjectList)
			return found, allowed(from.List(ctx, found, selected(options)))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			found := list.DeepCopyObject().(client.ObjectList)
			changes, err := from.Watch(ctx, found, selected(options))
			return changes, allowed(err)
		},
	}
	var last State
	seen := func(event watch.Event) (over bool, err error) {
		now, is := event.Object.(client.Object)
		if !is || event.Type == watch.Deleted || now.GetUID() != object.GetUID() {
			return false, ErrGone
		}
		last = read(now)
		show(last)
		return last.Outcome != Running, nil
	}
	there := func(store cache.Store) (over bool, err error) {
		if len(store.List()) == 0 {
			return false, ErrGone
		}
		return false, nil
	}
	served := cache.ToListWatcherWithWatchListSemantics(source, from)
	_, err := watchtools.UntilWithSync(ctx, served, object, there, seen)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return last, err
}
