// Package finalization is the work that follows when Velero has ended a restore: an ordered list of small tasks. Each gathers
// what it needs, decides by pure functions, and does only what is not done yet, so that it can run again at any time. Their
// findings go into the status and into the restore's results in the bucket.
//
// To add a task, write a file with a type that implements Task, and add a line to Tasks. The worker registers Activities, for
// workflows/finalization.
package finalization
