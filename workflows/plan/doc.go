// Package plan decides what becomes of a BackupPlan's due times, and whether its objective is met.
//
// It knows times, and no objects. Packages due and retention below it have the other rules. It imports nothing of ours but
// due.
package plan
