// Package collection deletes objects of the OADP namespace that were made for a deleted object of a tenant. It knows which
// kinds are made there, and when an object is an orphan: never a Velero Backup with data, never a young object, and nothing in
// a rebuilt cluster before Velero has listed its storage locations.
//
// The worker registers Activities for workflows/periodic.
package collection
