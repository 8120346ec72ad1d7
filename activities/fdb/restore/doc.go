// Package restore acts on FoundationDBRestores. Activities maintain the object: its plan, finalizer and status. Tools query and
// change the destination by FoundationDB's tools, and run the tasks that follow a restore. A restore that was ever started is
// never started again.
//
// The worker registers both, for workflows/fdb/restore.
package restore

// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbrestores,verbs=get;patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbrestores/status,verbs=patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups,verbs=get;list
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
