// Package v1alpha1 is what users of FoundationDB see of Holdfast in Kubernetes: the kinds of API group
// fdb.holdfast.dev/v1alpha1. The FoundationDB operator's own kinds (apps.foundationdb.org) can be installed beside them;
// its FoundationDBCluster is only read.
//
// Bad values are refused at apply, in a sentence that says what is wrong. What the API server cannot judge is a condition.
//
// +kubebuilder:object:generate=true
// +groupName=fdb.holdfast.dev
package v1alpha1
