// Package due computes when the runs of a BackupPlan are due: neither twice nor never, also on the days on which the clocks
// change.
//
// It knows schedules, time zones and jitter. Workflows, activities, k8s/policy and the command line call it: it is a leaf.
package due
