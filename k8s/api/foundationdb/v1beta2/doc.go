// Package v1beta2 is what Holdfast reads of the FoundationDB operator's FoundationDBCluster (apps.foundationdb.org/v1beta2), and
// nothing more of it: objects of this type must never be written.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
package v1beta2
