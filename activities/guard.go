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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// guard refuses to act while another controller is in charge, gives every error its type, counts those that an operator
// must look at, and calls retried after a step that has taken several attempts.
func guard[In, Out any](
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
		if info.Attempt > 1 {
			metrics.ActivityRetried(info.ActivityType.Name)
			if err == nil {
				retried(in, out, info)
			}
		}
		return out, err
	}
}

// conflictBackoff is for patches that meet another writer: re-read and decide again, for about a second.
func conflictBackoff() wait.Backoff {
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7}
}

// conflicts reports, and counts, that a write to a resource met another writer.
func conflicts(resource string) func(error) bool {
	return func(err error) bool {
		conflict := apierrors.IsConflict(err)
		if conflict {
			metrics.PatchConflict(resource)
		}
		return conflict
	}
}

// errGone: the object vanished between reading and writing.
var errGone = errors.New("the object is gone")

// patchObject lets change alter an object outside its status and sends the difference, if any. It reports whether there
// was one.
func patchObject(ctx context.Context, to client.Client, object client.Object, change func()) (bool, error) {
	before := object.DeepCopyObject().(client.Object)
	change()
	if equality.Semantic.DeepEqual(before, object) {
		return false, nil
	}
	err := patchError(object, to.Patch(ctx, object, k8s.BoundPatch(before)))
	return err == nil, err
}

// patchStatus is patchObject for the status.
func patchStatus(ctx context.Context, to client.Client, object client.Object, change func()) (bool, error) {
	before := object.DeepCopyObject().(client.Object)
	change()
	if equality.Semantic.DeepEqual(before, object) {
		return false, nil
	}
	err := patchError(object, to.Status().Patch(ctx, object, k8s.BoundPatch(before)))
	return err == nil, err
}

func patchError(object client.Object, err error) error {
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) {
		return errGone
	}
	return fmt.Errorf("patch %T %s: %w", object, client.ObjectKeyFromObject(object), err)
}
