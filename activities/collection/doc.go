// Package collection deletes objects of the OADP namespace that were made for a deleted object of a tenant. It knows which
// kinds are made there, and when an object is an orphan: never a Velero Backup with data, never a young object, and nothing in
// a rebuilt cluster before Velero has listed its storage locations.
//
// The worker registers Activities for workflows/periodic.
package collection

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups;nonadminrestores;nonadminbackupstoragelocations,verbs=get
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=nonadminbackupstoragelocationapprovalrequests,verbs=list;delete
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=secrets,verbs=list;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backupstoragelocations,verbs=list;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;restores,verbs=get;list;delete
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=list;delete
// +kubebuilder:rbac:groups=holdfast.dev,resources=restoredrills,verbs=get
