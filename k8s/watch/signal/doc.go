// Package signal signals workflows that their objects have changed: it knows which workflow serves which kind, under which ID
// and on which task queue.
//
// Package watched calls it, and package schedules uses its settings for starting workflows; starter makes its client. It
// imports workflows/contract alone.
package signal
