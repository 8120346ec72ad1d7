// Package backup acts on NonAdminBackups: it knows what one, its Velero Backup and its DeleteBackupRequests say of each other,
// which Velero Backup belongs to it (and that no other is ever touched), and what its status must say. What happens next,
// workflows/backup decides by the View.
//
// The worker registers Activities, which read the API server itself. The watcher calls Gather over its cache, Judge and View;
// the activities of other kinds read a backup the same way. Gather, Judge and the Activities do I/O, all else is a pure
// function. It imports, of ours, activities, activities/stall, k8s and workflows/contract.
package backup
