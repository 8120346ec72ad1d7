// Package tools builds the programs that Holdfast is tested and developed with (etcd, kube-apiserver, Temporal, Velero,
// linters and so on) from their Go modules, and keeps the results in a cache.
//
// Each program has a folder beside this file with a go.mod and go.sum of its own, so that its dependencies never meet
// ours. The version is written there and nowhere else. A program is compiled once per version, flags and Go release;
// two processes never compile the same program at the same time, and a half-written file is never seen under its name.
package tools
