// Package location decides for one NonAdminBackupStorageLocation: the next step by its view, when it is settled, and what it
// waits for. Its activities, in activities/location, make and delete what Velero needs of it.
//
// Package workflows registers Kind, and the watcher asks Settled. It imports, of ours, only packages below workflows.
package location
