// Package released keeps the ledger of NonAdminBackups that went while their data stayed: ConfigMap holdfast-released in the
// OADP namespace. What is in it is not offered to its tenant again until an administrator removes the entry.
//
// The activities of backups and of synchronization call it. It imports, of ours, only k8s.
package released
