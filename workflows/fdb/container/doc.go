// Package container guards one container of FoundationDB backups, whichever Kubernetes clusters use it: who expires or deletes
// it does so alone, not while a restore reads it, and nobody deletes what others use.
//
// Package workflows registers Kind; whoever asks goes through workflows/fdb/tools. It imports, of ours, only packages below
// workflows.
package container
