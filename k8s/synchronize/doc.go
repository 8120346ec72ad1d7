// Package synchronize decides which Velero Backups, found by Velero in the object stores, are offered to their tenants as
// NonAdminBackups again. Nothing that a tenant's bucket says of a Backup's owner is believed: the storage location decides.
package synchronize
