// Package queue has the activities of the queue before Velero: they find who waits for a turn and who has one, and give turns.
//
// Workflow workflows/queue calls them; the worker registers them. It knows NonAdminBackups, NonAdminRestores and the Velero
// objects made for them.
package queue

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups;nonadminrestores,verbs=get;list
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups;restores,verbs=get;list
