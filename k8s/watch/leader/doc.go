// Package leader elects, of several watchers, the one that does what one is enough for.
//
// It is called by package watch; starter makes the Lease. It knows the Lease and nothing of what is done in its name, and
// imports nothing of ours.
package leader
