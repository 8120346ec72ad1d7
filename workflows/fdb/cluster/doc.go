// Package cluster is the owner of one FoundationDB cluster, whichever Kubernetes clusters back it up: it runs what changes
// backups in the database one command at a time, in the order of asking.
//
// Package workflows registers Kind; whoever asks goes through workflows/fdb/tools. It imports, of ours, only packages below
// workflows.
package cluster
