// Package caches fills the watcher's caches page by page, trims what they hold, records what the API server refuses to them, and
// finds out which cached objects are out of date.
//
// A kind of cached objects is a value of type Kind, which says what is kept of an object: packages velero and fdb make them.
// Packages starter and watch make the caches by it, and the sweeps of package watched compare them.
package caches
