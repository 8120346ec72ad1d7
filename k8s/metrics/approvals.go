package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	approvals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_approval_actions_total",
		Help: "What was done to approval requests of storage locations: request, approve, reject, revoke and others.",
	}, []string{"action"})
	throughTemporal = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "holdfast_decisions_through_temporal",
		Help: "1 while Temporal's Updates and signals decide about storage locations, else 0.",
	})
)

func init() {
	ctrlmetrics.Registry.MustRegister(approvals, throughTemporal)
	for _, action := range []string{"request", "approve", "reject", "revoke"} {
		approvals.WithLabelValues(action)
	}
}

// ApprovalAdvanced counts a change of an approval request's status.
func ApprovalAdvanced(action string) { approvals.WithLabelValues(action).Inc() }

// SetDecisionsThroughTemporal says whether Temporal's Updates and signals decide about storage locations.
func SetDecisionsThroughTemporal(count bool) { throughTemporal.Set(number(count)) }
