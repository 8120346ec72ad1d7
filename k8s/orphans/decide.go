package orphans

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// OriginOf returns the tenant's object that made was made for. It is false unless made is proven to be Holdfast's, or the
// OADP non-admin controller's: by its labels, by its name, and by an origin that could exist.
func (k Kind) OriginOf(made client.Object) (types.NamespacedName, bool) {
	key, found := k.Origin.Of(made)
	labels := made.GetLabels()
	return key, found && k.Origin.Is(made, key.Namespace, key.Name) &&
		labels[oadpv1alpha1.ManagedByLabel] == oadpv1alpha1.ManagedByLabelValue &&
		labels[k.Origin.NACUUIDLabel] == made.GetName() &&
		len(validation.IsDNS1123Label(key.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(key.Name)) == 0
}

// Suspect reports whether made may be an orphan at all: it is proven to be ours and nobody deletes it yet.
func (k Kind) Suspect(made client.Object) bool {
	_, ok := k.OriginOf(made)
	return ok && made.GetDeletionTimestamp().IsZero()
}

// Orphan reports whether made has lost the object that it was made for. origin is what was read under that name after
// made, nil if there was nothing. As long as there is an object of that name, only a UID proves that it is another one; one
// whose status claims what was made keeps it.
func (k Kind) Orphan(made, origin client.Object) bool {
	if !k.Suspect(made) {
		return false
	}
	if origin == nil {
		return true
	}
	uid := ""
	if k.uidAnnotation != "" {
		uid = made.GetAnnotations()[k.uidAnnotation]
	}
	return uid != "" && uid != string(origin.GetUID()) && !claims(origin, made.GetName())
}

func claims(origin client.Object, name string) bool {
	location, ok := origin.(*oadpv1alpha1.NonAdminBackupStorageLocation)
	return ok && location.Status.VeleroBackupStorageLocation != nil && location.Status.VeleroBackupStorageLocation.NACUUID == name
}

// Disposable reports whether an orphan, as it is now, may be deleted.
func (k Kind) Disposable(made client.Object) bool { return k.disposable == nil || k.disposable(made) }

// Young reports whether something is too young to be collected: whoever made it may not be through with it.
func Young(made client.Object, now time.Time, grace time.Duration) bool {
	return now.Sub(made.GetCreationTimestamp().Time) < grace
}

// Absent reports whether err says that one object does not exist. An API server that does not serve its kind answers "not
// found" too, which says nothing about the object.
func Absent(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Name != "" && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
