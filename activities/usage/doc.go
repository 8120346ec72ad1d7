// Package usage knows what a namespace uses of its quota: how each NonAdminBackup counts, and what Velero's volumes hold.
// k8s/policy/quota decides by it whether there is a place.
//
// The activities of backups, the watcher and the command line call it.
package usage
