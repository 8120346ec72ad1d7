// Package buckets keeps Velero's Backups in step with the buckets of tenants' storage locations, in Velero's place: Velero
// would read whatever a tenant puts there, however large it is (docs/adr/0042). It brings a Backup into the cluster once it has
// read its files within limits, and takes one out of it whose files have outgrown them.
//
// activities/synchronization calls it. Its decisions are pure functions of what a bucket lists and of Velero's Backups.
package buckets

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backupstoragelocations,verbs=get;patch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=podvolumebackups,verbs=create
