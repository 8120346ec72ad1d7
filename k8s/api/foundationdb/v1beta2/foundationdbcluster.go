package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is that of the FoundationDB operator.
	GroupVersion = schema.GroupVersion{Group: "apps.foundationdb.org", Version: "v1beta2"}

	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &FoundationDBCluster{}, &FoundationDBClusterList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// FoundationDBCluster is a FoundationDB cluster in Kubernetes.
//
// +kubebuilder:object:root=true
type FoundationDBCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FoundationDBClusterSpec   `json:"spec,omitempty"`
	Status FoundationDBClusterStatus `json:"status,omitempty"`
}

// FoundationDBClusterSpec has the fields of the operator's spec that are read.
type FoundationDBClusterSpec struct {
	// Version is the desired version.
	Version string `json:"version,omitempty"`
}

// FoundationDBClusterStatus has the fields of the operator's status that are read.
type FoundationDBClusterStatus struct {
	// RunningVersion is the version that runs; empty until one does.
	RunningVersion string `json:"runningVersion,omitempty"`
	// ConnectionString is the content of its cluster file.
	ConnectionString string `json:"connectionString,omitempty"`
}

// Version returns the version that clients of the cluster must have.
func (c *FoundationDBCluster) Version() string {
	if c.Status.RunningVersion != "" {
		return c.Status.RunningVersion
	}
	return c.Spec.Version
}

// FoundationDBClusterList is a list of FoundationDBClusters.
//
// +kubebuilder:object:root=true
type FoundationDBClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FoundationDBCluster `json:"items"`
}
