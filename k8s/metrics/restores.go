package metrics

import "time"

var (
	finalizationTasks = registered(newCounter("holdfast_restore_finalization_tasks_total",
		"Tasks after restores that have ended, by task and result.", "task", "result"))
	finalizationTask = registered(newHistogram("holdfast_restore_finalization_task_seconds",
		"Time that a task after a restore has taken, with its waiting.", longBuckets, "task"))
	finalization = registered(newHistogram("holdfast_restore_finalization_seconds",
		"Time that the finalization of a restore has taken.", longBuckets)).WithLabelValues()
)

// FinalizationTaskKnown creates the series of a task at zero: an alert on an increase does not see a series that starts at one.
func FinalizationTaskKnown(task string) {
	for _, result := range []Result{ResultCompleted, ResultPartiallyFailed} {
		finalizationTasks.WithLabelValues(task, string(result))
	}
}

// FinalizationTaskEnded is called when a status first shows that a task of a finalization has ended in a phase.
func FinalizationTaskEnded(task, phase string, took time.Duration) {
	finalizationTasks.WithLabelValues(task, string(VeleroResult(phase))).Inc()
	observe(finalizationTask.WithLabelValues(task), took)
}

// RestoreFinalized is called when a status first shows the end of a finalization.
func RestoreFinalized(took time.Duration) { observe(finalization, took) }
