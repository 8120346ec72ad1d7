// Package fdblock takes the lock by which FoundationDB operators of several Kubernetes clusters take turns at one database.
package fdblock
