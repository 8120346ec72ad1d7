package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
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

func init() { ctrlmetrics.Registry.MustRegister(finalizationTasks, finalizationTask, finalization) }

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
