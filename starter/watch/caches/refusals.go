package caches

import (
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"holdfast.dev/holdfast/k8s/metrics"
)

// refusalCounts is how long one refusal counts: informers and the election retry every few seconds.
const refusalCounts = 30 * time.Second

// Refusals remembers that the API server has refused the watcher something for lack of rights: a list, a watch, or its Lease. The
// cache is then out of date, or no watcher leads, and nothing else shows it: informers and the election retry silently. The zero
// value is ready for use.
type Refusals struct{ last atomic.Pointer[refusal] }

type refusal struct {
	at  time.Time
	err error
}

// Take records an error if it is a refusal.
func (r *Refusals) Take(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		r.note(err)
	}
}

func (r *Refusals) note(err error) {
	metrics.AccessDenied(metrics.StepWatch)
	r.last.Store(&refusal{at: time.Now(), err: err})
}

// Forget is called when everything has been listed: an API server that is starting refuses for a moment what is granted.
func (r *Refusals) Forget() { r.last.Store(nil) }

// Recent returns the last refusal, if it still counts.
func (r *Refusals) Recent() error {
	last := r.last.Load()
	if last == nil || time.Since(last.at) >= refusalCounts {
		return nil
	}
	return fmt.Errorf("the API server refuses what the watcher needs: %w", last.err)
}
