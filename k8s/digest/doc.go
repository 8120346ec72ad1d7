// Package digest makes keyed digests of the objects in a backup's archive, and says what differs from them later.
//
// A digest proves nothing to somebody without the key, and gives away nothing about what it covers, not even to somebody who
// guesses. The activities use it. It does no I/O.
package digest
