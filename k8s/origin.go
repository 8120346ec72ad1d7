package k8s

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Origin is how an object in the OADP namespace says which tenant's object of one kind it was made for: the names of two
// annotations and of a label. Tenants cannot write where such objects are.
type Origin struct {
	NamespaceAnnotation, NameAnnotation, NACUUIDLabel string
}

// Origins, by the kind of the tenant's object.
var (
	BackupOrigin = Origin{
		NamespaceAnnotation: oadpv1alpha1.NabOriginNamespaceAnnotation,
		NameAnnotation:      oadpv1alpha1.NabOriginNameAnnotation,
		NACUUIDLabel:        oadpv1alpha1.NabOriginNACUUIDLabel,
	}
	RestoreOrigin = Origin{
		NamespaceAnnotation: oadpv1alpha1.NarOriginNamespaceAnnotation,
		NameAnnotation:      oadpv1alpha1.NarOriginNameAnnotation,
		NACUUIDLabel:        oadpv1alpha1.NarOriginNACUUIDLabel,
	}
	LocationOrigin = Origin{
		NamespaceAnnotation: oadpv1alpha1.NabslOriginNamespaceAnnotation,
		NameAnnotation:      oadpv1alpha1.NabslOriginNameAnnotation,
		NACUUIDLabel:        oadpv1alpha1.NabslOriginNACUUIDLabel,
	}
	DownloadOrigin = Origin{
		NamespaceAnnotation: oadpv1alpha1.NadrOriginNamespaceAnnotation,
		NameAnnotation:      oadpv1alpha1.NadrOriginNameAnnotation,
		NACUUIDLabel:        oadpv1alpha1.NadrOriginNACUUIDLabel,
	}
)

// ValidOriginValue reports whether an origin annotation can be the name of an object or a namespace. (The OADP non-admin
// controller takes names of up to 252 characters.)
func ValidOriginValue(value string) bool { return len(value) > 0 && len(value) <= 253 }

// Is reports whether made, which may be nil, names the tenant's object as the one it was made for. It is asked before
// anything is done to an object that was found through a tenant's object.
func (o Origin) Is(made client.Object, namespace, name string) bool {
	if made == nil || reflect.ValueOf(made).IsNil() {
		return false
	}
	annotations := made.GetAnnotations()
	return made.GetLabels()[oadpv1alpha1.OadpLabel] == oadpv1alpha1.OadpLabelValue &&
		annotations[o.NamespaceAnnotation] == namespace && annotations[o.NameAnnotation] == name
}

// Of returns the tenant's object that made names as its origin, and false if it names none.
func (o Origin) Of(made client.Object) (types.NamespacedName, bool) {
	annotations := made.GetAnnotations()
	key := types.NamespacedName{Namespace: annotations[o.NamespaceAnnotation], Name: annotations[o.NameAnnotation]}
	return key, ValidOriginValue(key.Namespace) && ValidOriginValue(key.Name)
}

// Meta returns the metadata of an object to be made in the OADP namespace for a tenant's object with that NACUUID.
func (o Origin) Meta(of client.Object, nacuuid, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace,
		Name:      name,
		Labels: map[string]string{
			oadpv1alpha1.OadpLabel:      oadpv1alpha1.OadpLabelValue,
			oadpv1alpha1.ManagedByLabel: oadpv1alpha1.ManagedByLabelValue,
			o.NACUUIDLabel:              nacuuid,
		},
		Annotations: map[string]string{
			o.NamespaceAnnotation: of.GetNamespace(),
			o.NameAnnotation:      of.GetName(),
		},
	}
}
