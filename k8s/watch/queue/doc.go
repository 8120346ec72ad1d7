// Package queue shows in status.queueInfo where in Velero's queue everything unfinished is.
//
// Package watch calls it, for the leading watcher, and package velero says when positions may have changed. It knows
// NonAdminBackups and NonAdminRestores, reads the caches alone, and writes nothing but that field. It imports, of ours,
// activities/backup and activities/restore, k8s, and of package caches how a cache is listed.
package queue
