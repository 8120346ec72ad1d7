// Package restore acts on NonAdminRestores. It knows how a NonAdminRestore, its Velero Restore and its backup refer to each
// other, which Velero Restore belongs to it (and that no other is ever touched), what may be restored from a tenant's own
// bucket, and its status. workflows/restore decides what happens next by the View.
//
// The worker registers Activities, which read from the API server itself. The watcher calls Gather over its cache, Judge and
// View.
package restore
