// Package signal tells workflows that their objects have changed: it knows which workflow serves which kind, under which ID
// and on which task queue.
//
// It is called by package watched with whatever is due, and by package schedules for how a workflow is started; starter makes
// its client. It imports workflows/contract alone.
package signal
