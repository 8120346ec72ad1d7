// Package fdbrestore decides what is to be done for a FoundationDBRestore (seed 004, "Reconciling Restores"). Its decisions are
// functions of plain values, so they are the same in a replay and can be tested without any server.
package fdbrestore
