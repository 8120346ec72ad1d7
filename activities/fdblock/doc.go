// Package fdblock takes the lock by which FoundationDB operators of several Kubernetes clusters take turns at one database.
// Only with build tag fdb does it speak with databases, through FoundationDB's C library.
//
// worker/fdbworker hands it to the activities of FoundationDB. It imports, of ours, only activities/fdb/tools, whose FDBLocker
// it is.
package fdblock
