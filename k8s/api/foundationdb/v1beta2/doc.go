// Package v1beta2 has those fields of the FoundationDB operator's FoundationDBCluster (apps.foundationdb.org/v1beta2) that
// Holdfast reads. Objects of this type must never be written: the other fields would be lost.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
package v1beta2
