package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// Guard refuses to act while another controller is in charge, gives every error its type, counts those that need an
// operator, and calls retried after a step that has taken several attempts.
func Guard[In, Out any](
	paused func() error, step func(context.Context, In) (Out, error), retried func(In, Out, activity.Info),
) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		var none Out
		if err := paused(); err != nil {
			return none, temporal.NewApplicationErrorWithCause(err.Error(), contract.ErrorPaused, err)
		}
		out, err := step(ctx, in)
		err = asApplicationError(err)
		info := activity.GetInfo(ctx)
		var application *temporal.ApplicationError
		if errors.As(err, &application) && application.Type() == contract.ErrorAccessDenied {
			metrics.AccessDenied(info.ActivityType.Name)
		}
		waits := application != nil && application.Category() == temporal.ApplicationErrorCategoryBenign
		if info.Attempt > 1 && !waits {
			metrics.ActivityRetried(info.ActivityType.Name)
			if err == nil {
				retried(in, out, info)
			}
		}
		return out, err
	}
}

// Update reads an object and all that belongs to it, calls act, and returns the view afterwards. After a conflict with another
// writer it starts over. ErrGone from act stands for the view of a deleted object.
func Update[O, V any](resource string, gather func() (O, error), act func(O) error, view func(O) V) (V, error) {
	var none, seen V
	err := retry.OnError(ConflictBackoff(), Conflicts(resource), func() error {
		objects, err := gather()
		if err != nil {
			return err
		}
		seen = none
		err = act(objects)
		if errors.Is(err, ErrGone) {
			return nil
		}
		if err != nil {
			return err
		}
		seen = view(objects)
		return nil
	})
	if err != nil {
		return none, err
	}
	return seen, nil
}

// ConflictBackoff is for patches that conflict with another writer: re-read and decide again, for about a second.
func ConflictBackoff() wait.Backoff {
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7}
}

// Conflicts reports, and counts, that a write to a resource conflicted with another writer.
func Conflicts(resource string) func(error) bool {
	return func(err error) bool {
		conflict := apierrors.IsConflict(err)
		if conflict {
			metrics.PatchConflict(resource)
		}
		return conflict
	}
}

// ErrGone says that the object was deleted between reading and writing.
var ErrGone = errors.New("the object is gone")

// PatchObject sends the change that change makes to an object outside its status. It reports whether there was one.
func PatchObject(ctx context.Context, to client.Client, object client.Object, change func()) (bool, error) {
	before := object.DeepCopyObject().(client.Object)
	change()
	if equality.Semantic.DeepEqual(before, object) {
		return false, nil
	}
	err := PatchError(object, to.Patch(ctx, object, k8s.BoundPatch(before)))
	return err == nil, err
}

// PatchStatus is PatchObject for the status.
func PatchStatus(ctx context.Context, to client.Client, object client.Object, change func()) (bool, error) {
	before := object.DeepCopyObject().(client.Object)
	change()
	if equality.Semantic.DeepEqual(before, object) {
		return false, nil
	}
	err := PatchError(object, to.Status().Patch(ctx, object, k8s.BoundPatch(before)))
	return err == nil, err
}

// PatchError wraps the error of a patch, with types for a conflict and for a deleted object.
func PatchError(object client.Object, err error) error {
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) {
		return ErrGone
	}
	return fmt.Errorf("patch %T %s: %w", object, client.ObjectKeyFromObject(object), err)
}
