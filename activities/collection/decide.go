package collection

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/owner"
)

// Suspect reports whether made may be an orphan at all: it is proven to be ours and not being deleted yet.
func (k Kind) Suspect(made client.Object) bool {
	_, ok := k.Origin.Proven(made)
	return ok && made.GetDeletionTimestamp().IsZero()
}

// Orphan reports whether made has lost the object for which it was made. origin is the object of that name, read after made;
// nil if there was none. If there is an object of that name, only a UID proves that it is another one; an object whose status
// claims made keeps it.
func (k Kind) Orphan(made, origin client.Object) bool {
	if !k.Suspect(made) {
		return false
	}
	if origin == nil {
		return true
	}
	return k.Origin.ForAnother(made, origin) && !owner.Claims(origin, made.GetName())
}

// Disposable reports whether an orphan, as it is now, may be deleted.
func (k Kind) Disposable(made client.Object) bool { return k.disposable == nil || k.disposable(made) }

// Young reports whether an object is too young to be collected: the process that made it may still be at work.
func Young(made client.Object, now time.Time, grace time.Duration) bool {
	return now.Sub(made.GetCreationTimestamp().Time) < grace
}

// Absent reports whether err says that one object does not exist. An API server that does not serve the kind answers "not
// found" too, which says nothing about the object.
func Absent(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Name != "" && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
