package main

// The worker's rights: what its activities do, and nothing else. `make generate` writes deploy/rbac/worker_role.yaml.
//
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores,verbs=get;list;patch;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackupstoragelocations,verbs=get;patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackupstoragelocations/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadmindownloadrequests,verbs=get;list;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadmindownloadrequests/status,verbs=patch
// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans,verbs=get;list;create;update;delete;manage-default
// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=nonadminbackupstoragelocationapprovalrequests,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=nonadminbackupstoragelocationapprovalrequests/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=secrets,verbs=list;create;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;restores,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups,verbs=patch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=deletebackuprequests,verbs=list;create;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=podvolumebackups;datauploads;podvolumerestores;datadownloads,verbs=list
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=podvolumebackups,verbs=create
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backupstoragelocations,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=downloadrequests,verbs=get;create;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=dataprotectionapplications,verbs=list
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=apps,namespace=openshift-adp,resources=deployments,resourceNames=non-admin-controller;velero,verbs=get
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims;pods,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=list
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=get
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list
