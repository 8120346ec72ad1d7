package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	restores = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_restores_total",
		Help: "NonAdminRestores that have ended, by result.",
	}, []string{"result"})
	restoreCreation = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_restore_creation_seconds",
		Help:    "Time from the creation of a NonAdminRestore to its Velero Restore, unless it was BackingOff or waited for a turn.",
		Buckets: longBuckets,
	})
	restoreCompletion = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_restore_completion_seconds",
		Help:    "Time from the creation of a NonAdminRestore to its end, with what follows after Velero.",
		Buckets: longBuckets,
	})
	restoreMirror = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_restore_mirror_seconds",
		Help:    "Time from Velero's completion of a restore to its final phase in the NonAdminRestore's status.",
		Buckets: longBuckets,
	})
	finalizationTasks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_restore_finalization_tasks_total",
		Help: "Tasks after restores that have ended, by task and result.",
	}, []string{"task", "result"})
	finalizationTask = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "holdfast_restore_finalization_task_seconds",
		Help:    "Time that a task after a restore has taken, with its waiting.",
		Buckets: longBuckets,
	}, []string{"task"})
	finalization = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_restore_finalization_seconds",
		Help:    "Time that the finalization of a restore has taken.",
		Buckets: longBuckets,
	})
)

func init() {
	ctrlmetrics.Registry.MustRegister(restores, restoreCreation, restoreCompletion, restoreMirror,
		finalizationTasks, finalizationTask, finalization)
	for _, result := range Results {
		restores.WithLabelValues(string(result))
	}
}

// RestoreCreated is called once, when a NonAdminRestore's Velero Restore has been created; not if the NonAdminRestore was
// BackingOff before, or has waited for a turn. The argument is its creation time.
func RestoreCreated(created time.Time) { observeSince(restoreCreation, created) }

// RestoreMirrored is called when the status of a NonAdminRestore first shows a final phase of Velero's. completed is Velero's
// completion time; zero if Velero gives none.
func RestoreMirrored(completed time.Time) {
	if !completed.IsZero() {
		observeSince(restoreMirror, completed)
	}
}

// RestoreFinished is called when a NonAdminRestore is over: phase is that of its finalization or, if there was none, Velero's.
// created is the NonAdminRestore's creation time.
func RestoreFinished(phase string, created time.Time) {
	restores.WithLabelValues(string(VeleroResult(phase))).Inc()
	observeSince(restoreCompletion, created)
}

// RestoreRejected is called when a NonAdminRestore's spec has been refused.
func RestoreRejected() { restores.WithLabelValues(string(ResultRejected)).Inc() }

// RestoreDeleted is called when the finalizer of a NonAdminRestore has been removed after its deletion.
func RestoreDeleted() { restores.WithLabelValues(string(ResultDeleted)).Inc() }

// RestoreStalled is called once for each restore that has stalled.
func RestoreStalled() { stalled.Inc() }

// FinalizationTaskKnown creates the series of a task at zero: an alert on an increase does not see a series that starts at one.
func FinalizationTaskKnown(task string) {
	for _, result := range []Result{ResultCompleted, ResultPartiallyFailed} {
		finalizationTasks.WithLabelValues(task, string(result))
	}
}

// FinalizationTaskEnded is called when a status first shows that a task of a finalization has ended in a phase.
func FinalizationTaskEnded(task, phase string, took time.Duration) {
	finalizationTasks.WithLabelValues(task, string(VeleroResult(phase))).Inc()
	finalizationTask.WithLabelValues(task).Observe(max(0, took.Seconds()))
}

// RestoreFinalized is called when a status first shows the end of a finalization.
func RestoreFinalized(took time.Duration) { finalization.Observe(max(0, took.Seconds())) }
