// Package shorten bounds texts from outside, so that they fit a condition, an Event or a log.
//
// Any package may call it.
package shorten
