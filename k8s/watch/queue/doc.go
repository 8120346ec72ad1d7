// Package queue shows in status.queueInfo where in Velero's queue everything unfinished is.
//
// It is called by package watch, for the leading watcher, and told by package velero when positions may have changed. It
// knows NonAdminBackups and NonAdminRestores, reads the caches alone, and writes nothing but that field. It imports k8s,
// k8s/backup, k8s/metrics, and of package caches how a cache is listed.
package queue
