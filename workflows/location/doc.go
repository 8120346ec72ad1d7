// Package location decides for one NonAdminBackupStorageLocation: the next step by its view, when it is settled, and what it
// waits for. Its activities, in activities/location, make and delete the objects that Velero needs for it.
//
// Package workflows registers Kind, and the watcher calls Settled.
package location
