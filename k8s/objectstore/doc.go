// Package objectstore reads and writes the files that Velero keeps for a backup or restore, in the bucket of a Velero
// BackupStorageLocation: S3 and what speaks its protocol, Google Cloud Storage, Azure.
//
// A location's own credential opens the bucket, never an identity of this process or machine: a tenant chooses where its
// location points, and must not reach anything that its credential does not open. What a bucket holds is a stranger's: sizes
// are limited, and nothing read is trusted. No error repeats a credential, a URL, or what a server answered but its error
// code.
//
// activities/finalization calls it. It imports nothing of ours, and nobody else imports a cloud's SDK.
package objectstore
