// Package tools queries and changes FoundationDB by its own tools, for one FoundationDBBackup at a time. It uses only the secrets
// of that object's namespace, and reads them for each call. A command may be repeated after any end: it first checks whether it
// is due.
//
// The worker registers Tools on the tools' queue; the activities of restores share its lock and limits.
package tools

// Secrets are the credentials of stores and the certificates of databases. A pod template may have FDB_TLS_CA_FILE from a
// ConfigMap.
//
// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get
