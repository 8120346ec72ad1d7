// Package v1alpha1 is Holdfast's API in Kubernetes for tenants and administrators: the kinds of API group
// oadp.openshift.io/v1alpha1 with their phases, conditions, labels, annotations and finalizers.
//
// The JSON names, constants and texts are those of the OADP Non-Admin Controller, so that manifests and tools
// written for it keep working. They are public contract: change none of them, only add.
//
// Status fields that mirror a Velero object have no schema in the CRDs: a newer Velero may write values that this release does
// not know, and the API server must not refuse a copy of them.
//
// +kubebuilder:object:generate=true
// +groupName=oadp.openshift.io
package v1alpha1
