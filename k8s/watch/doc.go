// Package watch notices: it turns Kubernetes events into workflow signals. It decides only whether an object is settled;
// for every other object it makes sure that a workflow runs and has been told to look.
//
// It puts the rooms together: the kinds (packages velero and fdb), what all share (watched), the caches, and what one of several
// watchers is enough for (leader, queue, schedules). It is called by starter, and imports of ours k8s and workflows/contract.
//
// Signals are hints. They may come twice, late, or for nothing; none is lost for longer than a resync. Two watchers may
// run at once, and both signal; queue positions and Schedules are kept by the one that leads. Ends are handed over before
// beginnings. While Temporal is away the workqueue retries for ever; when the API server returns, what the caches do not
// know yet is looked for live, without waiting for the informers' backoff.
package watch
