// Package backup decides for one NonAdminBackup: the next step by its view, when it is settled, and when a deletion is
// requested of Velero again. The steps are activities of activities/backup.
//
// Package workflows registers Kind, and the watcher calls Settled.
package backup
