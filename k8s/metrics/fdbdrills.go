package metrics

import holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"

var (
	fdbDrills = newCounter("holdfast_foundationdb_drills_total",
		"FoundationDBDrills with a verdict, by the reason of their condition Verified.", "reason")
	fdbDrillRestores = newHistogram("holdfast_foundationdb_drill_restore_seconds",
		"Time that a FoundationDBRestore took for a drill, if its backup was verified.", longBuckets)
)

// beginFDBDrills creates the series at zero: an alert on an increase does not see a series that starts at one.
func beginFDBDrills() {
	for _, reason := range holdfastv1alpha1.VerdictReasons() {
		fdbDrills.WithLabelValues(reason)
	}
}

// FDBDrillConcluded is called once for each drill, when its status first has a verdict.
func FDBDrillConcluded(reason string) { fdbDrills.WithLabelValues(reason).Inc() }

// FDBDrillRestored is called when a backup was verified: its restore took so many seconds.
func FDBDrillRestored(seconds int64) { fdbDrillRestores.WithLabelValues().Observe(float64(seconds)) }
