// Package queue has the activities of the queue before Velero: they find who waits for a turn and who has one, and give turns.
//
// Workflow workflows/queue calls them; the worker registers them. It knows NonAdminBackups, NonAdminRestores and the Velero
// objects made for them.
package queue
