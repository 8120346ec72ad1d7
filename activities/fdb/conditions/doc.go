// Package conditions computes status.conditions of the FoundationDB kinds from a workflow's findings: the conditions that hold,
// and Ready, which sums them up.
//
// The activities that publish a status call it. Everything is a function of plain values.
package conditions
