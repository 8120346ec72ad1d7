// Package objectstore reads and writes the files that Velero keeps for a backup or restore, in the bucket of a Velero
// BackupStorageLocation: S3 and compatible stores, Google Cloud Storage, Azure.
//
// A location's own credential opens the bucket, never an identity of this process or machine: a tenant chooses where its
// location points, and must not reach anything that its credential does not open. A bucket's content may be anybody's: sizes
// are limited, and nothing read is trusted. Errors contain no credential, no URL, and of a server's answer only the error code.
//
// activities/finalization calls it. It imports nothing of ours, and no other package imports a cloud's SDK.
package objectstore
