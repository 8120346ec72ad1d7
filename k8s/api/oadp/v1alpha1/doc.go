// Package v1alpha1 is what tenants and administrators see of Holdfast in Kubernetes: the kinds of API group
// oadp.openshift.io/v1alpha1 with their phases, conditions, labels, annotations and finalizers.
//
// The JSON names, constants and texts are those of the OADP Non-Admin Controller, so that manifests and tools
// written for it keep working. They are public contract: change none of them, only add.
//
// Status fields that mirror a Velero object carry no schema of Velero's in the CRDs. A newer Velero may write
// values this release has never heard of, and a copy of them must not be refused.
//
// +kubebuilder:object:generate=true
// +groupName=oadp.openshift.io
package v1alpha1
