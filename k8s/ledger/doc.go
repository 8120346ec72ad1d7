// Package ledger keeps the ledger of NonAdminBackups that were removed while their data stayed: ConfigMap holdfast-released
// in the OADP namespace. A backup in the ledger is not offered to its tenant again until an administrator removes the entry.
//
// The activities of backups and of synchronization call it.
package ledger
