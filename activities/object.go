package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/contract"
)

var (
	// ErrGone says that the object was deleted between reading and writing.
	ErrGone = errors.New("the object is gone")
	// ErrUnchanged from a step says that nothing was written: what was read is the present state.
	ErrUnchanged = errors.New("nothing was written")
)

// Object is how activities act on the objects of one kind. A Read is one of them and all that belongs to it, as read, which a
// step may change. A View is what the kind's workflow decides by.
type Object[Read, View any] struct {
	Cluster
	// Kind is an empty object of the kind.
	Kind client.Object
	// Resource is the kind's name in metrics.
	Resource string
	// Gather reads through the Client.
	Gather func(context.Context, contract.ObjectRef) (*Read, error)
	// Gone reports that there is no such object any more. Steps are not called then.
	Gone func(*Read) bool
	// Outlived: what was made for an object may outlive it. Steps are called nevertheless.
	Outlived bool
	// Rereads: the view is of what is there after a step, read again. Of all other kinds a step keeps what was read up to date.
	Rereads bool
	// View reduces what was read. It must serve an object that is gone.
	View func(*Read) View
	// Found reports whether a view is of an object that exists.
	Found func(View) bool
}

// Update reads the object and all that belongs to it, calls act, and returns the view afterwards. After a conflict with another
// writer it starts over.
func (k Object[Read, View]) Update(ctx context.Context, ref contract.ObjectRef, act func(*Read) error) (View, error) {
	var none, view View
	err := retry.OnError(ConflictBackoff(), Conflicts(k.Resource), func() error {
		view = none
		read, err := k.Gather(ctx, ref)
		if err != nil {
			return err
		}
		again := k.Rereads
		switch err := k.act(read, act); {
		case errors.Is(err, ErrUnchanged):
			again = false
		case errors.Is(err, ErrGone):
			if again = k.Outlived || k.Rereads; !again {
				return nil
			}
		case err != nil:
			return err
		}
		if again {
			err = k.Reread(ctx, ref, read)
		}
		if err == nil {
			view = k.View(read)
		}
		return err
	})
	return view, err
}

func (k Object[Read, View]) act(read *Read, act func(*Read) error) error {
	if k.Gone(read) && !k.Outlived {
		return ErrUnchanged
	}
	return act(read)
}

// Reread replaces what was read by the present state, after a write that does not return it.
func (k Object[Read, View]) Reread(ctx context.Context, ref contract.ObjectRef, read *Read) error {
	present, err := k.Gather(ctx, ref)
	if err == nil {
		*read = *present
	}
	return err
}

// OfObject is the input of an activity that acts on one object.
type OfObject interface{ Reference() contract.ObjectRef }

// RegisterStep registers an activity that is Update with a step. The step changes what was read, and the cluster.
func RegisterStep[Read, View any, In OfObject](
	registry worker.ActivityRegistry, object Object[Read, View], as contract.Activity[In, View],
	step func(context.Context, *Read, In) error,
) {
	RegisterWhole(registry, object, as, func(ctx context.Context, in In) (View, error) {
		return object.Update(ctx, in.Reference(), func(read *Read) error { return step(ctx, read, in) })
	})
}

// RegisterWhole registers an activity on an object that does more than Update.
func RegisterWhole[Read, View any, In OfObject](
	registry worker.ActivityRegistry, object Object[Read, View], as contract.Activity[In, View],
	function func(context.Context, In) (View, error),
) {
	Register(registry, as, Guard(object.Paused, function, func(in In, view View, info activity.Info) {
		if !object.Found(view) {
			return
		}
		ref, about := in.Reference(), object.Kind.DeepCopyObject().(client.Object)
		about.SetNamespace(ref.Namespace)
		about.SetName(ref.Name)
		about.SetUID(types.UID(ref.UID))
		object.recordRetried(about, info)
	}))
}
