// Package stall asks an object store, by a URL that Velero has signed, how long ago a file was written: so it is found out
// that Velero has finished without saying so. No credential of a storage location is needed for it.
//
// The activities of backups and restores call it. It imports nothing of ours.
package stall
