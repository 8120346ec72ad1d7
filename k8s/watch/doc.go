// Package watch notices: it turns Kubernetes events into workflow signals. It decides only whether an object is settled; for
// every other object it makes sure that a workflow runs and has been told to look. Signals are hints: they may come twice,
// late, or for nothing, and none is lost for longer than a resync (see Watcher).
//
// It puts together the kinds (packages velero and fdb), what all share (watched), the caches, and what one of several watchers
// is enough for (leader, queue, schedules). starter calls it. Below k8s/watch, imports of ours are k8s, activities (what reads
// an object and judges it) and, of workflows, workflows/contract and the decisions of the kinds.
package watch
