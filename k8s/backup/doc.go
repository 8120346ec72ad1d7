// Package backup knows what a NonAdminBackup, its Velero Backup and its DeleteBackupRequests say of each other: which
// Velero Backup belongs to it (and that no other is ever touched), what its status must say, when it is settled, and
// where it stands in Velero's queue. It decides nothing about what happens next; the workflow does.
//
// Everything but Gather is a pure function. The worker gathers from the API server itself, the watcher from its cache.
package backup
