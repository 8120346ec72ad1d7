package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	finalizationTasks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_restore_finalization_tasks_total",
		Help: "Tasks after restores that have ended, by result.",
	}, []string{"result"})
	finalization = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_restore_finalization_seconds",
		Help:    "From the beginning of what follows a restore to its end.",
		Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 3600},
	})
)

func init() {
	ctrlmetrics.Registry.MustRegister(finalizationTasks, finalization)
	for _, result := range []Result{ResultCompleted, ResultPartiallyFailed} {
		finalizationTasks.WithLabelValues(string(result))
	}
}

// FinalizationTaskEnded is to be called when a status has come to show that a task after a restore has ended.
func FinalizationTaskEnded(phase string) {
	finalizationTasks.WithLabelValues(string(VeleroResult(phase))).Inc()
}

// RestoreFinalized is to be called when a status has come to show the end of what follows a restore.
func RestoreFinalized(began, ended time.Time) {
	finalization.Observe(max(0, ended.Sub(began).Seconds()))
}
