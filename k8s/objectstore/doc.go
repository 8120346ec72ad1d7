// Package objectstore reads and writes the files that Velero keeps for a backup or restore, in the bucket of a Velero
// BackupStorageLocation.
//
// A bucket's content may be anybody's: sizes are limited, and nothing read is trusted. Errors contain no credential, no URL,
// and of a server's answer only the error code.
//
// activities/finalization calls it; objectstore/clouds opens the buckets, so that this package links no
// cloud's SDK.
package objectstore
