// Package signal signals workflows that their objects have changed: it knows which workflow serves which kind, under which ID
// and on which task queue.
//
// Package watched calls it; starter makes its client.
package signal
