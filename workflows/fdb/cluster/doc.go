// Package cluster is the owner of one FoundationDB cluster, for all Kubernetes clusters that back it up: it runs what changes
// backups in the database one command at a time, in the order of the requests.
//
// Package workflows registers Kind; requests go through workflows/fdb/requests.
package cluster
