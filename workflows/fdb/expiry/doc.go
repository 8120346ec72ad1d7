// Package expiry is one turn of a FoundationDBBackup in the queue of expirations: it holds the container alone, runs a pod that
// expires or deletes data, and reports how that ended. There are never two pods for one backup.
//
// Package workflows registers Kind; the queue starts it by an activity. activities/fdb/jobs uses its rules for a turn's pod.
package expiry
