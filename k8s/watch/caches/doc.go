// Package caches fills the watcher's caches page by page, knows what the API server refuses them, and finds out where they
// are behind it.
//
// It is called by packages starter and watch, which make the caches, and by package watched, whose sweeps compare them. It
// knows no kind: what is kept of an object says package trim. It imports trim and metrics.
package caches
