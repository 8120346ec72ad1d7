// Package conditions makes the list in status.conditions of the FoundationDB kinds out of what a workflow has found: the
// specification's conditions that hold, and Ready, which sums them up.
//
// It is called by the activities that publish a status, and imports no client: everything is a function of plain values.
package conditions
