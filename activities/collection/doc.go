// Package collection deletes what was made in the OADP namespace for an object of a tenant that is gone. It knows which kinds
// are made there, and when one is an orphan: never a Velero Backup with data, nothing that is young, nothing while Velero has
// not looked into the storage locations of a cluster that was rebuilt.
//
// The worker registers Activities for workflows/periodic. It imports, of ours, activities, those of the kinds that it
// collects, k8s and workflows/contract.
package collection
