// Package caches fills the watcher's caches page by page, trims what they hold, has them catch up soon after an outage of the API
// server, and records what the API server refuses to them.
//
// A kind of cached objects is a value of type Kind, which says what is kept of an object: packages velero and fdb make them.
// Packages starter and watch make the caches by it.
package caches
