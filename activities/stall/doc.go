// Package stall reads from an object store, by a URL that Velero has signed, how long ago a file was written. So it can be
// checked whether Velero has finished without updating its object, and no credential of a storage location is needed.
//
// The activities of backups and restores call it. It imports, of ours, k8s/objectstore/trust.
package stall
