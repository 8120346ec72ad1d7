// Package agents builds and compares the Deployment of a backup's agents: the processes that copy between a FoundationDB cluster
// and the object store. The comment of PodTemplate says what a user may change in their pods.
//
// It does no I/O. Its callers are the activities of FoundationDBBackups and package jobs.
package agents
