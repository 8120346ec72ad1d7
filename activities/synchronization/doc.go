// Package synchronization offers Velero Backups, which Velero has found in the object stores, to their tenants as
// NonAdminBackups again. Nothing that a tenant's bucket says of a Backup's owner is believed: the storage location decides.
// What was released stays away (see k8s/released).
//
// The worker registers Activities, for workflows/periodic. Its decisions are pure functions of the lists that it reads. It
// imports, of ours, activities, activities/backup, k8s and workflows/contract.
package synchronization
