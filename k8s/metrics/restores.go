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
		Help:    "Time from the creation of a NonAdminRestore to its Velero Restore, but for those that were BackingOff before.",
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
		Help:    "Time from the beginning of what follows a restore to its end.",
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

// RestoreCreated is to be called when a NonAdminRestore's Velero Restore has been made, once, unless the NonAdminRestore was
// BackingOff before. The argument is its creation time.
func RestoreCreated(created time.Time) { observeSince(restoreCreation, created) }

// RestoreMirrored is to be called when the status of a NonAdminRestore has come to show a final phase of Velero's. completed
// is Velero's completion time; zero if Velero gives none.
func RestoreMirrored(completed time.Time) {
	if !completed.IsZero() {
		observeSince(restoreMirror, completed)
	}
}

// RestoreFinished is to be called when a NonAdminRestore is over: phase is that of what followed after Velero or, if nothing
// did, Velero's. created is the NonAdminRestore's creation time.
func RestoreFinished(phase string, created time.Time) {
	restores.WithLabelValues(string(VeleroResult(phase))).Inc()
	observeSince(restoreCompletion, created)
}

// RestoreRejected is to be called when a NonAdminRestore's spec has been refused.
func RestoreRejected() { restores.WithLabelValues(string(ResultRejected)).Inc() }

// RestoreDeleted is to be called when a NonAdminRestore has been released after its deletion.
func RestoreDeleted() { restores.WithLabelValues(string(ResultDeleted)).Inc() }

// RestoreStalled is to be called when a restore has been found stalled, once.
func RestoreStalled() { stalled.Inc() }

// FinalizationTaskKnown puts the results of a task on the page before the first: an increase from nothing to one would be
// missed.
func FinalizationTaskKnown(task string) {
	for _, result := range []Result{ResultCompleted, ResultPartiallyFailed} {
		finalizationTasks.WithLabelValues(task, string(result))
	}
}

// FinalizationTaskEnded is to be called when a status has come to show that a task after a restore has ended in a phase.
func FinalizationTaskEnded(task, phase string, took time.Duration) {
	finalizationTasks.WithLabelValues(task, string(VeleroResult(phase))).Inc()
	finalizationTask.WithLabelValues(task).Observe(max(0, took.Seconds()))
}

// RestoreFinalized is to be called when a status has come to show the end of what follows a restore.
func RestoreFinalized(took time.Duration) { finalization.Observe(max(0, took.Seconds())) }
