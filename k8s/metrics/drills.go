package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	drills = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_drills_total",
		Help: "RestoreDrills with a verdict, by the reason of their condition Verified.",
	}, []string{"reason"})
	drillFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_drill_failed_checks_total",
		Help: "Checks of RestoreDrills that have failed, by check; \"restore\" is Velero's restore itself.",
	}, []string{"check"})
	drillRecovery = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_drill_recovery_seconds",
		Help:    "Time that Velero took to restore a backup for a drill, and its workloads to become ready, if it was verified.",
		Buckets: longBuckets,
	})
)

func init() { ctrlmetrics.Registry.MustRegister(drills, drillFailures, drillRecovery) }

// DrillVerdictKnown creates the series of a verdict at zero: an alert on an increase does not see a series that starts at one.
func DrillVerdictKnown(reason string) { drills.WithLabelValues(reason) }

// DrillConcluded is called once for each drill, when its status first has a verdict.
func DrillConcluded(reason string) { drills.WithLabelValues(reason).Inc() }

// DrillRestoreFailed is the check that a drill fails whose backup Velero cannot restore.
const DrillRestoreFailed = "restore"

// DrillCheckKnown creates the series of a check at zero.
func DrillCheckKnown(check string) { drillFailures.WithLabelValues(check) }

// DrillCheckFailed is called once for each check of a drill that has failed, with its verdict.
func DrillCheckFailed(check string) { drillFailures.WithLabelValues(check).Inc() }

// DrillRecovered is called when a backup was verified: its recovery took so many seconds.
func DrillRecovered(seconds int64) { drillRecovery.Observe(float64(seconds)) }
