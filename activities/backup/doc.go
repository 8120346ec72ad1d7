// Package backup acts on NonAdminBackups. It knows how a NonAdminBackup, its Velero Backup and its DeleteBackupRequests refer
// to each other, which Velero Backup belongs to it (and that no other is ever touched), and its status. workflows/backup
// decides what happens next by the View.
//
// The worker registers Activities, which read from the API server itself. The watcher calls Gather over its cache, Judge and
// View; the activities of other kinds read a backup the same way. Gather, Judge and the Activities do I/O, all else is pure.
package backup

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups,verbs=get;list;patch;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores,verbs=list;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackupstoragelocations,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces;secrets,verbs=get
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups,verbs=get;create;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=deletebackuprequests,verbs=list;create;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backupstoragelocations,verbs=get
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=podvolumebackups;datauploads,verbs=list
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=downloadrequests,verbs=get;create;delete
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=list;create;patch
