// Package content decides whether a good backup of a plan holds what the plan's backups usually hold: Velero completes the backup
// of a namespace that somebody has emptied, too.
//
// It compares numbers, and reads no object. Activities call it.
package content
