// Package v1alpha1 is Holdfast's API in Kubernetes for users of FoundationDB: the kinds of API group fdb.holdfast.dev/v1alpha1.
// The FoundationDB operator's own kinds (apps.foundationdb.org) can be installed beside them; its FoundationDBCluster is only
// read.
//
// The API server refuses bad values at apply, with a message that says what is wrong. What it cannot validate becomes a
// condition.
//
// +kubebuilder:object:generate=true
// +groupName=fdb.holdfast.dev
package v1alpha1
