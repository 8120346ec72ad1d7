// Package clouds opens the bucket of a Velero BackupStorageLocation: S3 and compatible stores, Google Cloud Storage, Azure.
//
// A location's own credential opens the bucket, never an identity of this process or machine: a tenant chooses where its
// location points, and must not reach anything that its credential does not open.
//
// worker calls it. No other package imports it or a cloud's SDK, so that only the worker links them.
package clouds
