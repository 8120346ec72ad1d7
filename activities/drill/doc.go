// Package drill acts for one RestoreDrill: it judges it, has Velero restore the backup into the drill's namespace, checks what
// came back, writes the verdict, and removes everything. Package namespaces, below it, makes and deletes the namespace, with
// rights of its own.
//
// The worker registers it.
//
// +kubebuilder:rbac:groups=holdfast.dev,resources=restoredrills,verbs=get;list
// +kubebuilder:rbac:groups=holdfast.dev,resources=restoredrills/status,verbs=patch
// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims;pods;events,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=list
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=restores,verbs=get;create;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;backupstoragelocations,verbs=get
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=podvolumerestores,verbs=list
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=get;create;delete
package drill
