package caches

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/klog/v2"
)

const (
	// retryInterval is how often a list or a watch is tried again during an outage. The reflector's own backoff grows to half a
	// minute, and it does not know when the API server is back.
	retryInterval = time.Second
	// failuresLogged: the first of this many failures in a row is logged.
	failuresLogged = 60
)

// outlast calls do until the outage of the API server that made it fail is over. Each refusal is passed to refused: an API server
// that is starting refuses what is granted. All other answers are the reflector's to handle.
func outlast[T any](ctx context.Context, refused func(error), do func() (T, error)) (T, error) {
	for failures := 0; ; failures++ {
		result, err := do()
		if !away(err) {
			return result, err
		}
		refused(err)
		if failures%failuresLogged == 0 {
			klog.FromContext(ctx).Error(err, "Failed to list or watch; it is retried every second", "failures", failures+1)
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
		return unreachable(err)
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge): // its data are older than the cache
		return false
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
		code == http.StatusUnauthorized || code == http.StatusForbidden
}

// unreachable reports whether a request got no answer. A certificate that either side cannot verify and an answer that cannot be
// decoded are none of these errors.
func unreachable(err error) bool {
	var network *net.OpError
	var stream http2.StreamError
	return (errors.As(err, &network) && network.Op != "remote error") || // a TLS alert
		errors.As(err, &stream) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsTimeout(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}
