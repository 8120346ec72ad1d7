package caches

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// retryInterval is how often a list or a watch is tried again during an outage. The reflector's own backoff grows to a minute,
// and it does not know when the API server is back.
const retryInterval = time.Second

// outlast calls do until the outage of the API server that made it fail is over, and logs its beginning. Each refusal is passed
// to refused: an API server that is starting refuses what is granted. All other answers are the reflector's to handle.
func outlast[T any](ctx context.Context, refused func(error), do func() (T, error)) (T, error) {
	for failures := 0; ; failures++ {
		result, err := do()
		if !away(err) {
			return result, err
		}
		refused(err)
		if failures == 0 {
			klog.FromContext(ctx).Error(err, "Failed to list or watch; it is retried every second")
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(retryInterval):
		}
	}
}

// away reports whether a request failed because the API server is not there, or not ready yet.
func away(err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case !errors.As(err, &status):
		return true
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge): // its data are older than the cache
		return false
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
		code == http.StatusUnauthorized || code == http.StatusForbidden
}
