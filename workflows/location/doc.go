// Package location decides for one NonAdminBackupStorageLocation: the next step by its view, when it is settled, and what it
// waits for. Its activities make and delete what Velero needs of it.
//
// Package workflows registers Kind; the activities are those of activities/location. It imports, of ours, only packages below
// workflows.
package location
