package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

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
