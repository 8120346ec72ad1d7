package activities

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

// asApplicationError is the one place where errors get the type that workflows and alerts know them by. All are
// retryable but those that no repetition can cure. Forbidden is not permanent: an API server that starts answers so.
func asApplicationError(err error) error {
	var unusable *policy.UnusableError
	var already *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &already):
		return err
	case errors.As(err, &unusable):
		return temporal.NewApplicationErrorWithCause(err.Error(), contract.ErrorPolicyUnusable, err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return temporal.NewApplicationErrorWithCause(err.Error(), contract.ErrorAccessDenied, err)
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrorInvalidObject, err)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), contract.ErrorKubernetes, err)
}

// refused reports whether the API server will never accept the creation that failed with err: the object is invalid, or
// its namespace is going away.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.HasStatusCause(err, "NamespaceTerminating")
}
