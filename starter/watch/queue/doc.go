// Package queue sends the queue before Velero, a workflow, what happens to objects that need turns, and shows the position of
// unfinished objects in both queues, that one and Velero's, in status.queueInfo.
//
// Package watch calls it, for the leading watcher, and package velero says what happens. It knows NonAdminBackups and
// NonAdminRestores, reads only the caches and the order of the turns, and writes only that field.
package queue

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups/status;nonadminrestores/status,verbs=patch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;restores,verbs=list;watch
