// Package fdbworker serves FoundationDB's half of a Kubernetes cluster: its workflows, their activities and its tools, on task
// queues of their own and with rights of their own.
package fdbworker
