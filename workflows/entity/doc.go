// Package entity is the loop of a workflow that serves one object, once for all kinds.
//
// Its law: a run ends, or goes on as a new one, only after it has read the object since the last signal came. Then no event is
// lost, whatever moment it comes at: what is signalled to a run that ends makes Temporal refuse the end, and the loop goes
// round again.
//
// It knows nothing of any kind, and imports package contract and Temporal's SDK. The workflows of the kinds use it.
package entity
