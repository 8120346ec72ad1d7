// Package shorten bounds texts that others write, so that they fit a condition, an Event or a log.
//
// Anybody may call it. It imports nothing of ours.
package shorten
