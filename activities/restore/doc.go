// Package restore acts on NonAdminRestores. It knows how a NonAdminRestore, its Velero Restore and its backup refer to each
// other, which Velero Restore belongs to it (and that no other is ever touched), what may be restored from a tenant's own
// bucket, and its status. workflows/restore decides what happens next by the View.
//
// The worker registers Activities, which read from the API server itself. The watcher calls Gather over its cache, Judge and
// View.
package restore

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores,verbs=get;patch;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups,verbs=get
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackupstoragelocations,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces;secrets,verbs=get
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=get
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=restores,verbs=get;create;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;backupstoragelocations,verbs=get
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=podvolumerestores;datadownloads,verbs=list
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=downloadrequests,verbs=get;create;delete
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=get;create;delete
// +kubebuilder:rbac:groups=apps,namespace=openshift-adp,resources=deployments,resourceNames=velero,verbs=get
