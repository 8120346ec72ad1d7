// Package backup acts on NonAdminBackups. It knows how a NonAdminBackup, its Velero Backup and its DeleteBackupRequests refer
// to each other, which Velero Backup belongs to it (and that no other is ever touched), and its status. workflows/backup
// decides what happens next by the View.
//
// The worker registers Activities, which read from the API server itself. The watcher calls Gather over its cache, Judge and
// View; the activities of other kinds read a backup the same way. Gather, Judge and the Activities do I/O, all else is pure.
package backup
