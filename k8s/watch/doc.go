// Package watch notices: it turns Kubernetes events into workflow signals. It decides only whether an object is settled;
// for every other object it makes sure that a workflow runs and has been told to look.
//
// Signals are hints. They may come twice, late, or for nothing; none is lost for longer than a resync. Two watchers may
// run at once; what one is enough for, the one that leads does. While Temporal is away the workqueue retries for ever; when the API
// server returns, the objects are listed live, without waiting for the informers' backoff.
package watch
