package main

// The watcher's rights: it reads, signals through Temporal, and writes nothing but queue positions and the Lease of the leading
// one. `make generate` writes deploy/rbac/watcher_role.yaml.
//
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups;nonadminrestores;nonadminbackupstoragelocations;nonadmindownloadrequests,verbs=get;list;watch
// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans,verbs=get;list;watch
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups/status;nonadminrestores/status,verbs=patch
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=nonadminbackupstoragelocationapprovalrequests,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces;secrets,verbs=list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;restores;downloadrequests;backupstoragelocations,verbs=get;list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=deletebackuprequests;podvolumebackups;datauploads;podvolumerestores;datadownloads,verbs=list;watch
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=dataprotectionapplications,verbs=list
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,resourceNames=holdfast-policy,verbs=get
// +kubebuilder:rbac:groups=apps,namespace=openshift-adp,resources=deployments,resourceNames=non-admin-controller,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=openshift-adp,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=openshift-adp,resources=leases,resourceNames=holdfast-watcher,verbs=get;update
// +kubebuilder:rbac:groups=events.k8s.io,namespace=openshift-adp,resources=events,verbs=create;patch
