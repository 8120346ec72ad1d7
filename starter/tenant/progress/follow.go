package progress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

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
// interruptions of the watch, and shows when the API server does not answer. It returns the last state, with the error of ctx if
// that ends before, or ErrGone if the object is deleted before.
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
	seen := &screen{show: show}
	answered := func(asking context.Context, err error) error {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) { // an informer repeats for ever what is forbidden
			end(fmt.Errorf("follow %s: %w", object.GetName(), err))
		} else if asking.Err() == nil {
			seen.answered(err)
		}
		return err
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.ResourceVersion == "0" { // a cache of the API server may lack what was just created or changed
				options.ResourceVersion = ""
			}
			found := list.DeepCopyObject().(client.ObjectList)
			return found, answered(ctx, from.List(ctx, found, selected(options)))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			found := list.DeepCopyObject().(client.ObjectList)
			changes, err := from.Watch(ctx, found, selected(options))
			return changes, answered(ctx, err)
		},
	}
	changed := func(event watch.Event) (over bool, err error) {
		now, is := event.Object.(client.Object)
		if !is || event.Type == watch.Deleted || now.GetUID() != object.GetUID() {
			return false, ErrGone
		}
		state := read(now)
		seen.changed(state)
		return state.Outcome != Running, nil
	}
	there := func(store cache.Store) (over bool, err error) {
		if len(store.List()) == 0 {
			return false, ErrGone
		}
		return false, nil
	}
	served := cache.ToListWatcherWithWatchListSemantics(source, from)
	_, err := watchtools.UntilWithSync(ctx, served, object, there, changed)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return seen.state(), err
}

// screen shows a person the last state, or that the API server does not answer.
type screen struct {
	show func(State)

	mutex  sync.Mutex
	last   State
	silent bool // the API server
}

func (s *screen) state() State {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.last
}

func (s *screen) changed(now State) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last, s.silent = now, false
	s.show(now)
}

// answered shows, once, that the API server cannot be reached, and the last state again when it can. An answer that refuses a
// request is one, too: the informer goes on in another way.
func (s *screen) answered(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var refused apierrors.APIStatus
	unreachable := err != nil && (!errors.As(err, &refused) || refused.Status().Code >= http.StatusInternalServerError)
	switch {
	case !unreachable && s.silent:
		s.silent = false
		if s.last != (State{}) {
			s.show(s.last)
		}
	case unreachable && !s.silent:
		s.silent = true
		s.show(State{Phase: "cannot reach the API server, will retry", Message: err.Error()})
	}
}
