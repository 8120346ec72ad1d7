// Package fdbworker serves FoundationDB's half of a Kubernetes cluster: its workflows, their activities and its tools. It uses
// its own task queues, and needs only its own rights.
//
// worker calls it.
package fdbworker

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
