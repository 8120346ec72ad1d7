// Package watched is the one watcher of all kinds: its workqueue, what a look at an object tells its workflow, the sweeps
// after an outage, and the turns in which new objects begin.
//
// A kind is a value of type Kind; packages velero and fdb make those that there are, and package watch runs them. It decides
// only whether an object is settled, by a View that the kind made of it. It knows no kind, and imports, of ours, packages
// signal, caches and trim, k8s/owner, k8s/metrics and workflows/contract.
package watched
