// Package throttle is the coordinator that gives the FoundationDBBackups of one Kubernetes cluster their slots for first
// snapshots: how many run at a time, and who is next. The order is that of workflows/turns.
//
// Package workflows registers Kind.
package throttle
