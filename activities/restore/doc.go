// Package restore acts on NonAdminRestores: it knows what one, its Velero Restore and the backup that it names say of each
// other, which Velero Restore belongs to it (and that no other is ever touched), what may come back from a tenant's own
// bucket, and what its status must say. What happens next, workflows/restore decides by the View.
//
// The worker registers Activities, which read the API server itself. The watcher calls Gather over its cache, Judge and View.
// It imports, of ours, activities, activities/backup, k8s and workflows/contract.
package restore
