// Package digests records keyed digests of what a backup holds when it is complete, so that a drill finds out whether somebody
// has changed the archive since, and reads them.
//
// The worker registers Activities for workflows/backup. Drills use Sets.
package digests

// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups,verbs=get;patch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backupstoragelocations,verbs=get
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=get;create;patch
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=secrets,verbs=create
