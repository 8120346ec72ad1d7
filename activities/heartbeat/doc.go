// Package heartbeat says what a worker is, and whether it reaches its API server.
//
// The worker registers it, for the workflow of the same name. It imports, of ours, package activities, workflows/contract and
// k8s/shorten.
package heartbeat
