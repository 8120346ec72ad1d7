package approval

import (
	"holdfast.dev/holdfast/workflows/contract"
)

// NextApproval is the decision table of seed 001, with what surrounds it. Revoking comes first, then what the tenant has
// changed: a decision is about the spec that was asked about, never about a newer one.
func NextApproval(v contract.ApprovalView) contract.ApprovalAction {
	approve, reject := string(contract.DecisionApprove), string(contract.DecisionReject)
	switch {
	case !v.Needed:
		return contract.ApprovalClose
	case !v.Found:
		return contract.ApprovalWait // the location's own workflow makes the request
	case v.Revoke && v.HasApproved:
		return contract.ApprovalRevoke
	case v.Revoke:
		return contract.ApprovalReset
	case v.Unasked:
		return contract.ApprovalAsk
	case v.Returned && v.HasPending:
		return contract.ApprovalDrop
	case v.CredentialMoved:
		return contract.ApprovalFollow
	case !v.Fresh && v.HasPending && !v.Rejected && (v.Decision == approve || v.Decision == reject):
		return contract.ApprovalReset // what was decided about the spec before
	case !v.Fresh && v.Signed:
		return contract.ApprovalTidy
	case !v.Fresh:
		return contract.ApprovalWait
	case DecisionWaits(v):
		return contract.ApprovalWait
	case v.HasPending && v.Decision == approve:
		return contract.ApprovalApprove
	case v.HasPending && v.Decision == reject:
		return contract.ApprovalReject
	case v.Rejected:
		return contract.ApprovalReopen
	case v.HasPending:
		return contract.ApprovalWait // our own reset to pending, or somebody else's
	}
	return contract.ApprovalObserve
}

// DecisionWaits reports whether a decision is about a spec that the tenant has left for an invalid one. It counts as soon as
// the tenant is back at that spec.
func DecisionWaits(v contract.ApprovalView) bool {
	decided := v.Decision == string(contract.DecisionApprove) || v.Decision == string(contract.DecisionReject)
	return decided && v.Fresh && v.HasPending && !v.Present
}
