// Package locationspec judges the spec and the credential of a NonAdminBackupStorageLocation, builds from them the spec of the
// Velero BackupStorageLocation, and lists the changes for administrators.
//
// A verdict is a *check.InvalidSpecError, and quotes no content of a Secret. All functions are pure. The activities of storage
// locations and starter/location call it.
package locationspec
