// Package content decides whether a good backup of a plan holds what the plan's backups usually hold: Velero completes the backup
// of a namespace that somebody has emptied, too.
//
// It compares numbers, and reads no object. Activities call it; it imports, of ours, the status of a plan in k8s/api.
package content
