// Package download acts on NonAdminDownloadRequests. It knows which file may be handed out (never another tenant's or an
// administrator's), the Velero DownloadRequest for it, its status, and when it expires. workflows/download decides what happens
// next by the View.
//
// The worker registers Activities, which read from the API server itself. The watcher calls Gather over its cache, in which a
// Digest replaces each signed URL.
package download

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadmindownloadrequests,verbs=get;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadmindownloadrequests/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups;nonadminrestores,verbs=get
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=downloadrequests,verbs=get;create;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;restores;backupstoragelocations,verbs=get
