// Package expiryqueue is the coordinator that gives the FoundationDBBackups of one Kubernetes cluster their turns to expire or
// delete data: which is next, how many at a time, and what operators may change. The order is that of workflows/turns.
//
// Package workflows registers Kind.
package expiryqueue
