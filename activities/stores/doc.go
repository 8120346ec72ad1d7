// Package stores opens the object store that holds a backup, and lets few read from the buckets of tenants at a time.
//
// The activities that read files of backups use it: finalizations, digests, drills.
package stores
