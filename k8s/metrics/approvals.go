package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var approvals = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "holdfast_approval_actions_total",
	Help: "What was done to approval requests of storage locations: ask, approve, reject, revoke and others.",
}, []string{"action"})

func init() {
	ctrlmetrics.Registry.MustRegister(approvals)
	for _, action := range []string{"ask", "approve", "reject", "revoke"} {
		approvals.WithLabelValues(action)
	}
}

// ApprovalAdvanced counts a change of an approval request's status.
func ApprovalAdvanced(action string) { approvals.WithLabelValues(action).Inc() }
