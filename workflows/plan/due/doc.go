// Package due computes when the runs of a BackupPlan are due: neither twice nor never, also on the days on which the clocks
// change.
//
// It knows schedules, time zones and jitter. Workflows, activities, the watcher and the command line call it.
package due
