// Package fdbworker serves FoundationDB's half of a Kubernetes cluster: its workflows, their activities and its tools, on task
// queues of their own and with rights of their own.
//
// worker calls it. It imports, of ours, package workflows, the activities below activities/fdb and what they need made for
// them.
package fdbworker
