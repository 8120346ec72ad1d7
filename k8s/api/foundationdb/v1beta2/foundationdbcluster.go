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

// FoundationDBClusterSpec is what is read of the operator's.
type FoundationDBClusterSpec struct {
	// Version is what the cluster shall run.
	Version string `json:"version,omitempty"`
}

// FoundationDBClusterStatus is what is read of the operator's.
type FoundationDBClusterStatus struct {
	// RunningVersion is what it runs; empty until it does.
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
