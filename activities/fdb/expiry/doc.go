// Package expiry acts for turns of the queue of expirations: Activities plan a turn and create, observe and delete its pods;
// Coordination starts the turns and sends signals between turns, queue and backups. Find lists from the objects what a queue that
// has lost its state must know.
//
// The worker registers both, for workflows/fdb/expiry and workflows/fdb/expiryqueue.
package expiry

// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups,verbs=list
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;create;delete
