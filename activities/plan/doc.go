// Package plan serves BackupPlans: it keeps their Schedules, makes their NonAdminBackups, records on Velero Backups which plan
// has made them, deletes what no rule keeps, and writes their status.
//
// The worker registers its activities for the workflow BackupPlan. It decides by workflows/plan.
package plan
