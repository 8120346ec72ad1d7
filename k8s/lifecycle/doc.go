// Package lifecycle knows the status of a NonAdminBackup and of a NonAdminRestore, from the verdict on the spec to the deletion:
// the phases, the conditions, and what the status repeats of the Velero object. Both kinds have the same; type kind has the
// words that differ.
//
// Activities, the watcher and the command line call it. It changes objects in memory and does no I/O.
package lifecycle
