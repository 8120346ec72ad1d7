// Package plan decides what happens next for a BackupPlan, and is the workflow that serves it: it makes runs that are due,
// records and deletes its backups, and wakes when the objective is missed.
//
// Activities and the watcher use its decisions; packages due and retention below it have the rules.
package plan
