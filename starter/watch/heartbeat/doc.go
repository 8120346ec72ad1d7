// Package heartbeat has the leading watcher say once a minute how its Kubernetes cluster is, to a workflow that anyone with
// access to Temporal can read when the cluster cannot be reached.
//
// Package watch calls it; starter makes its client. It reads only the census of the caches. It imports, of ours, k8s/metrics,
// k8s/shorten and workflows/contract.
package heartbeat
