// Package jobs builds the pods that expire and delete data of FoundationDBBackups, and reads their results. PlanTurn says what a
// turn of the queue of expirations has to do; each step of it is one Pod, and View returns the pod's state.
//
// It does no I/O. The activities of expirations call it.
package jobs
