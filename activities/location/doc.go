// Package location acts on NonAdminBackupStorageLocations and their approval requests. It knows which objects belong to a
// location, whether its spec may be used, which spec is in force, what is made of it in the OADP namespace, and what a decision
// writes.
//
// The worker registers Activities, for workflows/location and workflows/approval. The watcher calls Gather over its cache, and
// View; starter/location writes decisions by the same functions.
package location

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackupstoragelocations,verbs=get;patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackupstoragelocations/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups,verbs=list
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=nonadminbackupstoragelocationapprovalrequests,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=nonadminbackupstoragelocationapprovalrequests/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces;secrets,verbs=get
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=secrets,verbs=create;patch;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backupstoragelocations,verbs=get;create;patch;delete
