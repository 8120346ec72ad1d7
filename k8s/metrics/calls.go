package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Used as an activity type by the watcher.
const (
	// StepQueuePosition: writing a queue position.
	StepQueuePosition = "write-queue-position"
	// StepWatch: listing or watching.
	StepWatch = "watch"
)

var (
	conflicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_patch_conflicts_total",
		Help: "Patches that conflicted with another writer's and were retried, by resource.",
	}, []string{"resource"})
	retries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_activity_retries_total",
		Help: "Attempts of an activity after its first.",
	}, []string{"activity_type"})
	denied = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_access_denied_total",
		Help: "Calls that the API server refused for missing rights.",
	}, []string{"activity_type"})
	policyProblem = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "holdfast_policy_problem",
		Help: "1 while the policy in force is not the one in the cluster, else 0.",
	})
	dependency = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "holdfast_dependency_up",
		Help: "1 if the readiness check of this name passed last, else 0.",
	}, []string{"check"})
)

func init() {
	ctrlmetrics.Registry.MustRegister(conflicts, retries, denied, policyProblem, dependency)
}

// PatchConflict counts a patch that failed because of another writer. resource is the plural, such as nonadminbackups.
func PatchConflict(resource string) { conflicts.WithLabelValues(resource).Inc() }

// ActivityRetried counts an attempt of an activity after its first.
func ActivityRetried(activityType string) { retries.WithLabelValues(activityType).Inc() }

// AccessDenied counts a call that the API server refused for missing rights.
func AccessDenied(activityType string) { denied.WithLabelValues(activityType).Inc() }

// SetPolicyProblem says whether the policy in force is not the one in the cluster.
func SetPolicyProblem(problem bool) { policyProblem.Set(number(problem)) }

// SetDependencyUp says whether a readiness check passed. Before its first answer a check has no series.
func SetDependencyUp(check string, up bool) { dependency.WithLabelValues(check).Set(number(up)) }

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
