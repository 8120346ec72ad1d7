// Package watch turns Kubernetes events into workflow signals. It decides only whether an object is settled; for every other
// object it makes sure that a workflow runs and has been signalled. Signals are hints: they may be duplicate, late, or
// needless, and a lost one is repeated at the next resync (see Watcher).
//
// It combines the kinds (packages velero and fdb), what all kinds share (watched), the caches, and the work of one leading
// watcher (leader, queue, schedules). starter calls it.
package watch
