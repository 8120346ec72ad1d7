// Package entity is the workflow that serves one object, once for all kinds: Kind is what differs, and Run the loop, whose hooks
// a kind sets where that is not enough.
//
// Its law: a run ends, or continues as new, only if it has read the object after the last signal came. Then no event is lost,
// whenever it comes: if a signal arrives while a run ends, Temporal refuses the end, and the loop makes another pass.
//
// It knows no kind. The workflows of the kinds use it.
package entity
