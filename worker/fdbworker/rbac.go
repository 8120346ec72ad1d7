package fdbworker

// The rights of a worker that serves FoundationDB alone. `make generate` writes deploy/components/fdb/rbac/worker_role.yaml from
// them.
//
// Secrets are those that an object or its pod template names: credentials of a store, certificates of a database. A pod template
// may have FDB_TLS_CA_FILE from a ConfigMap of its namespace. The tools that the worker runs need the same files.
//
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups,verbs=get;list;patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups/status,verbs=patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbrestores,verbs=get;patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbrestores/status,verbs=patch
// +kubebuilder:rbac:groups=apps.foundationdb.org,resources=foundationdbclusters,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;create;delete
// +kubebuilder:rbac:groups="",resources=secrets;configmaps;namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
