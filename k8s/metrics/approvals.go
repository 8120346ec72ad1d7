package metrics

var (
	approvals = registered(newCounter("holdfast_approval_actions_total",
		"What was done to approval requests of storage locations: request, approve, reject, revoke and others.", "action"))
	throughTemporal = registered(newGauge("holdfast_decisions_through_temporal",
		"1 while Temporal's Updates and signals decide about storage locations, else 0.")).WithLabelValues()
)

func init() {
	for _, action := range []string{"request", "approve", "reject", "revoke"} {
		approvals.WithLabelValues(action)
	}
}

// ApprovalAdvanced counts a change of an approval request's status.
func ApprovalAdvanced(action string) { approvals.WithLabelValues(action).Inc() }

// SetDecisionsThroughTemporal says whether Temporal's Updates and signals decide about storage locations.
func SetDecisionsThroughTemporal(count bool) { throughTemporal.Set(number(count)) }
