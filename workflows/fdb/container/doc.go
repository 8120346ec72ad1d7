// Package container guards one container of FoundationDB backups, for all Kubernetes clusters that use it: a workflow that
// expires or deletes it does so alone, not while a restore reads it, and data that others use are not deleted.
//
// Package workflows registers Kind; requests go through workflows/fdb/requests.
package container
