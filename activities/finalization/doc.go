// Package finalization is the work that follows when Velero has ended a restore: an ordered list of small tasks. Each gathers
// what it needs, decides by pure functions, and does only what is not done yet, so that it can run again at any time. Their
// findings go into the status and into the restore's results in the bucket.
//
// To add a task, write a file with a type that implements Task, and add a line to Tasks. The worker registers Activities, for
// workflows/finalization.
package finalization

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores,verbs=get
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims;pods,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=list
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;restores;backupstoragelocations,verbs=get
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=list;delete
