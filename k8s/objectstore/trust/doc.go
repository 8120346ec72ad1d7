// Package trust reads whom Velero trusts at the address of a BackupStorageLocation, and what the location keeps in Secrets.
//
// objectstore/clouds and k8s/velero call it: the watcher links the latter, so it must link no driver.
package trust
