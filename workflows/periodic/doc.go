// Package periodic holds what Schedules start, for a whole cluster at a time: BackupSynchronization offers backups found in
// object stores to their tenants again, GarbageCollection deletes what was made for objects that are gone.
//
// Package workflows registers both kinds; the activities are in activities/synchronization and activities/collection.
package periodic
