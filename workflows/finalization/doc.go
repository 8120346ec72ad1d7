// Package finalization does the work that follows when Velero has ended a restore: it runs the tasks of the plan, one after the
// other, and has their findings written. The workflow of the restore runs it as its child.
//
// Package workflows registers Kind; the tasks are in activities/finalization.
package finalization
