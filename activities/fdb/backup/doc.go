// Package backup acts on FoundationDBBackups: their finalizers, plans, status, Events and the Deployment of their agents. It runs
// no tool of FoundationDB; activities/fdb/tools does.
//
// The worker registers Activities, for workflows/fdb/backup and the throttle of first snapshots.
package backup

// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups,verbs=list;patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
