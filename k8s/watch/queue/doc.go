// Package queue sends the queue before Velero, a workflow, what happens to objects that need turns, and shows the position of
// unfinished objects in both queues, that one and Velero's, in status.queueInfo.
//
// Package watch calls it, for the leading watcher, and package velero says what happens. It knows NonAdminBackups and
// NonAdminRestores, reads only the caches and the order of the turns, and writes only that field.
package queue
