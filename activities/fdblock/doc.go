// Package fdblock acquires the lock by which the FoundationDB operators of several Kubernetes clusters take turns at one
// database. Only a build with tag fdb connects to databases, through FoundationDB's C library.
//
// worker/fdbworker hands it to the activities of FoundationDB.
package fdblock
