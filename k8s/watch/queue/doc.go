// Package queue shows the position of unfinished objects in Velero's queue, in status.queueInfo.
//
// Package watch calls it, for the leading watcher, and package velero says when positions may have changed. It knows
// NonAdminBackups and NonAdminRestores, reads only the caches, and writes only that field. It imports, of ours,
// activities/backup and activities/restore, k8s, and package caches for listing a cache.
package queue
