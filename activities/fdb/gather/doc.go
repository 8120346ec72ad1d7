// Package gather reads all that concerns one FoundationDBBackup, its cluster, credentials and agents, makes the view of it by
// which workflows decide, and writes into the object, in memory, what they found. It says which changes are worth an Event.
//
// Gather reads through a client.Reader: the API server in the activities, the cache in the watcher. All else is a pure
// function. The activities of FoundationDB and k8s/watch/fdb call it. It imports, of ours, k8s, workflows/contract and the
// decisions in workflows/fdb/backup.
package gather
