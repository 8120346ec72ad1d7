package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "fdb.holdfast.dev", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addGroup)

	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Names of the kinds and their resources.
const (
	KindFoundationDBBackup      = "FoundationDBBackup"
	ResourceFoundationDBBackups = "foundationdbbackups"

	KindFoundationDBRestore      = "FoundationDBRestore"
	ResourceFoundationDBRestores = "foundationdbrestores"
)

// Every kind of this package is in one of these lists, by its resource. It adds itself, in its file.
var (
	// Configuration is what tenants want back with a restore, without what Holdfast has recorded of it.
	Configuration []string
	// Requests are never restored: each would be carried out again.
	Requests []string
)

func addGroup(scheme *runtime.Scheme) error {
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// known returns a function that adds types to a scheme.
func known(types ...runtime.Object) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, types...)
		return nil
	}
}
