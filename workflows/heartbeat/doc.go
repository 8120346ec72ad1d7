// Package heartbeat keeps what a Kubernetes cluster says of itself where `holdfast fleet` finds it without the cluster: in a
// workflow's memo.
//
// Package workflows registers it. It imports, of ours, workflows/call, workflows/contract and workflows/kinds.
package heartbeat
