// Package expiry is one turn of a FoundationDBBackup in the queue of expirations: with the container for itself it has a pod
// expire or delete data, and says how that ended. Whatever happens, there are never two pods for one backup.
//
// Package workflows registers Kind; the queue starts it by an activity. activities/fdb/jobs uses what it says of a turn's pod. It
// imports, of ours, only packages below workflows, k8s/api and k8s/fdb.
package expiry
