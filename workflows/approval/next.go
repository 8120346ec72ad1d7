package approval

import (
	"holdfast.dev/holdfast/workflows/contract"
)

// NextApproval decides what is done to an approval request (docs/operators.md, "How to decide"). A revocation comes first, then
// the tenant's changes: a decision is about the spec of its request, never about a newer one.
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
	case v.NotRequested:
		return contract.ApprovalRequest
	case v.Returned && v.HasPending:
		return contract.ApprovalDrop
	case v.CredentialMoved:
		return contract.ApprovalFollow
	case !v.Fresh && v.HasPending && !v.Rejected && (v.Decision == approve || v.Decision == reject):
		return contract.ApprovalReset // the decision was about the spec before
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
		return contract.ApprovalWait // our own reset to pending, or another writer's
	}
	return contract.ApprovalObserve
}

// DecisionWaits reports whether a decision is about a spec that the tenant has replaced by an invalid one. It counts as soon as
// the tenant restores that spec.
func DecisionWaits(v contract.ApprovalView) bool {
	decided := v.Decision == string(contract.DecisionApprove) || v.Decision == string(contract.DecisionReject)
	return decided && v.Fresh && v.HasPending && !v.Present
}
