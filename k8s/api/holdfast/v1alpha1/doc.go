// Package v1alpha1 is Holdfast's own API in Kubernetes for tenants of Velero: the kinds of API group holdfast.dev/v1alpha1. They
// have a group of their own because fields added to OADP's kinds would be pruned where OADP's CRDs are installed.
//
// The API server refuses bad values at apply, with a message that says what is wrong. What it cannot validate becomes a
// condition.
//
// +kubebuilder:object:generate=true
// +groupName=holdfast.dev
package v1alpha1
