// Package restore knows what a NonAdminRestore, its Velero Restore and the backup that it names say of each other: which
// Velero Restore belongs to it (and that no other is ever touched), what its status must say, when it is settled, and
// where it stands in Velero's queue. It decides nothing about what happens next; the workflow does.
//
// Everything but Gather and Judge is a pure function. The worker gathers from the API server itself, the watcher from its
// cache.
package restore
