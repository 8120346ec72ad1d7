// Package backupspec judges the spec of a NonAdminBackup and builds from it the spec of the Velero Backup.
//
// A verdict is a *check.InvalidSpecError; any other error means that the spec could not be judged now and is worth a retry. Only
// the storage location that a spec names is read. The activities of backups and of synchronization, and the watcher, call it.
package backupspec
