// Package caches fills the watcher's caches page by page, records what the API server refuses to them, and finds out which
// cached objects are out of date.
//
// Packages starter and watch make the caches by it, and the sweeps of package watched compare them. It knows no kind: package
// trim says what is kept of an object.
package caches
