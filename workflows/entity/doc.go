// Package entity is the loop of a workflow that serves one object, once for all kinds.
//
// Its law: a run ends, or continues as new, only if it has read the object after the last signal came. Then no event is lost,
// whenever it comes: if a signal arrives while a run ends, Temporal refuses the end, and the loop makes another pass.
//
// It knows no kind, and imports package contract and Temporal's SDK. The workflows of the kinds use it.
package entity
