package activities

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
)

// notYetPoll is how often an activity that waits is retried.
const notYetPoll = 5 * time.Second

// NotYetError says that an activity waits. It is retried, and holds no slot of a worker meanwhile.
type NotYetError struct {
	// For says for what.
	For string
}

// Error implements error.
func (e *NotYetError) Error() string { return "waits for " + e.For }

// asApplicationError is the one place that gives errors the types by which workflows and alerts distinguish them. All are
// retryable except those that no retry can solve. Forbidden is not permanent: a starting API server answers so.
func asApplicationError(err error) error {
	var unusable *check.UnusableError
	var already *temporal.ApplicationError
	var notYet *NotYetError
	var ofStore interface{ OfObjectStore() }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &already):
		return err
	case errors.As(err, &notYet):
		return temporal.NewApplicationErrorWithOptions(notYet.Error(), contract.ErrorNotYet, temporal.ApplicationErrorOptions{
			Category: temporal.ApplicationErrorCategoryBenign, NextRetryDelay: notYetPoll,
		})
	case errors.As(err, &ofStore): // objectstore.Error: this package needs no drivers of clouds
		return temporal.NewApplicationErrorWithCause(err.Error(), contract.ErrorObjectStore, err)
	case errors.As(err, &unusable):
		return temporal.NewApplicationErrorWithCause(err.Error(), contract.ErrorPolicyUnusable, err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return temporal.NewApplicationErrorWithCause(err.Error(), contract.ErrorAccessDenied, err)
	case apierrors.IsInvalid(err), TooLarge(err):
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrorInvalidObject, err)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), contract.ErrorKubernetes, err)
}

// TooLarge reports whether the object is too large for the API server or for etcd behind it. Errors of etcd have no type, only
// a text.
func TooLarge(err error) bool {
	return err != nil && (apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max"))
}

// Refused reports whether the API server will never accept the creation that failed with err: the object is invalid, or its
// namespace is being deleted.
func Refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || TooLarge(err) ||
		apierrors.HasStatusCause(err, "NamespaceTerminating")
}

// AsConflict makes a conflict of an answer that something of the name exists: an earlier attempt of ours has made it, or somebody
// else, and the next read shows which.
func AsConflict(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "of that name", err)
	}
	return err
}
