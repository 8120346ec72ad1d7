// Package queue is the workflow that gives turns before Velero in a Kubernetes cluster: who may have a Velero Backup or
// Restore made now, and in which order the others wait.
//
// The watcher sends it news, and its turns go to the workflows of NonAdminBackups and NonAdminRestores, which make the Velero
// objects. What the objects say counts more than what it carries.
package queue
