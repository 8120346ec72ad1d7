// Package synchronization offers Velero Backups that Velero has found in the object stores to their tenants, as
// NonAdminBackups. Nothing in a tenant's bucket about a Backup's owner is trusted: the storage location decides. Released
// backups are not offered again (see k8s/ledger).
//
// The worker registers Activities, for workflows/periodic. Its decisions are pure functions of the lists that it reads.
package synchronization

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups,verbs=get;list;create
// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans,verbs=get
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackupstoragelocations,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups,verbs=get;list;patch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backupstoragelocations,verbs=list
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=list;create;patch
