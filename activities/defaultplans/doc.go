// Package defaultplans gives namespaces the BackupPlans that the administrator's policy names for them.
//
// The worker registers its activity for the workflow DefaultPlans.
package defaultplans

// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans,verbs=list;create;update;delete;manage-default
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list
