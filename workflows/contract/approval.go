package contract

import "time"

// KindApproval carries out what administrators decide about one NonAdminBackupStorageLocation, which is its object. It is open as
// long as that exists and needs approval. Input: ApprovalInput, no result. It receives SignalDecide, too.
var KindApproval = Kind{
	Workflow: "StorageLocationApproval", ID: "approval", Kubernetes: "NonAdminBackupStorageLocationApprovalRequest",
	Summary: "Approval of storage location",
}

// An administrator decides through Temporal with an Update or a signal.
const (
	// UpdateDecide carries a decision, and answers with its outcome. Payload: DecisionRequest, answer: DecisionOutcome.
	UpdateDecide = "decide"
	// SignalDecide carries a decision without an answer; the current details show the outcome. Payload: DecisionRequest.
	SignalDecide = "decide"
)

// ApprovalInput starts, and continues, the workflow of the approval of one storage location.
type ApprovalInput struct {
	ObjectInput
	// Refused is why the last SignalDecide was refused, for the current details; empty if it was not.
	Refused string `json:"refused,omitempty"`
}

type approvalActivity = Activity[ObjectStep, ApprovalView]

// Activities of the StorageLocationApproval workflow. Each but the last takes an ObjectStep; all return the ApprovalView
// after their effect, and may be repeated at any time.
var (
	RefreshApproval = approvalActivity{"refresh-approval", "Read the approval request"}
	// AdvanceApproval writes what is due to the approval request, see approval.NextApproval.
	AdvanceApproval = approvalActivity{"advance-approval", "Carry out what was decided or requested"}
	// DecideApproval writes a decision to the approval request, as kubectl would.
	DecideApproval = Activity[DecisionStep, ApprovalView]{"decide-approval", "Write the decision to the approval request"}
)

// Decision is what an administrator can decide.
type Decision string

// The decisions.
const (
	DecisionApprove Decision = "approve"
	DecisionReject  Decision = "reject"
	DecisionRevoke  Decision = "revoke"
)

// Types of the application errors with which a decision is refused. None is retryable.
const (
	// ErrorDecisionInvalid: the request itself is wrong: an unknown decision, no resourceVersion, no reason.
	ErrorDecisionInvalid = "DecisionInvalid"
	// ErrorNothingToDecide: nothing is pending, or nothing is approved that could be revoked.
	ErrorNothingToDecide = "NothingToDecide"
	// ErrorLookAgain: the approval request has changed since the administrator read it.
	ErrorLookAgain = "LookAgain"
	// ErrorDecisionsOff: decisions through Temporal do not count (--approve-through-temporal).
	ErrorDecisionsOff = "DecisionsOff"
)

// DecisionRequest is what an administrator sends by UpdateDecide or SignalDecide.
type DecisionRequest struct {
	Decision Decision `json:"decision"`
	// Reason is written to the approval request for all administrators to read; required.
	Reason string `json:"reason"`
	// ResourceVersion is that of the approval request that the administrator has read: the query and the current details
	// show it. If it has changed, the decision is refused.
	ResourceVersion string `json:"resourceVersion"`
}

// DecisionStep is the input of DecideApproval.
type DecisionStep struct {
	Ref     `json:"ref"`
	Request DecisionRequest `json:"request"`
	// UpdateID or SignalNumber (from 1, in this run) names the event of the history that holds the request: it says who sent it.
	UpdateID     string `json:"updateID,omitempty"`
	SignalNumber int    `json:"signalNumber,omitempty"`
}

// DecisionOutcome answers UpdateDecide.
type DecisionOutcome struct {
	Decided DecisionRecord `json:"decided"`
	// State is the state of the approval after the decision.
	State Approval `json:"state"`
}

// DecisionRecord says what was decided, by whom, when and why.
type DecisionRecord struct {
	Decision Decision  `json:"decision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason,omitempty"`
	// Generation is that of the approval request's spec that held the decision.
	Generation int64 `json:"generation,omitempty"`
}

// ApprovalAction is what an approval request needs next.
type ApprovalAction string

// The actions. All but two write to the approval request.
const (
	// ApprovalWait: nothing to do until somebody decides or the tenant changes the spec.
	ApprovalWait ApprovalAction = "wait"
	// ApprovalClose: nothing is left to decide about, ever.
	ApprovalClose ApprovalAction = "close"
	// ApprovalRevoke revokes the approval; a decision is needed again.
	ApprovalRevoke ApprovalAction = "revoke"
	// ApprovalRequest stores a new spec as pending.
	ApprovalRequest ApprovalAction = "request"
	// ApprovalReset sets the decision to pending, after a new spec was stored.
	ApprovalReset ApprovalAction = "reset"
	// ApprovalApprove makes the pending spec the approved one.
	ApprovalApprove ApprovalAction = "approve"
	// ApprovalReject refuses the pending spec.
	ApprovalReject ApprovalAction = "reject"
	// ApprovalReopen undoes a rejection: the pending spec waits for a decision again.
	ApprovalReopen ApprovalAction = "reopen"
	// ApprovalDrop forgets a pending spec, because the tenant has returned to the approved one.
	ApprovalDrop ApprovalAction = "drop"
	// ApprovalFollow records that the tenant's credential has changed, which needs no approval.
	ApprovalFollow ApprovalAction = "follow"
	// ApprovalTidy removes the annotations of a decision that status.lastDecision holds, so that the next decision is not
	// recorded with the wrong person or reason.
	ApprovalTidy ApprovalAction = "tidy"
	// ApprovalObserve records a decision when there was nothing to decide.
	ApprovalObserve ApprovalAction = "observe"
)

// ApprovalView describes an approval: plain facts, read live.
type ApprovalView struct {
	// Found: the approval request exists.
	Found bool `json:"found"`
	// Needed: the NonAdminBackupStorageLocation exists, is not being deleted, and the policy requires approval.
	Needed bool `json:"needed,omitempty"`
	// Request and ResourceVersion are the approval request's name and version.
	Request         string `json:"request,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Decision and Revoke are what administrators have set in the approval request's spec.
	Decision string `json:"decision,omitempty"`
	Revoke   bool   `json:"revoke,omitempty"`
	// Fresh: the approval request's spec has changed since Holdfast last acted on it.
	Fresh bool `json:"fresh,omitempty"`
	// HasPending, HasApproved: the approval request's status holds a pending, an approved spec.
	HasPending  bool `json:"hasPending,omitempty"`
	HasApproved bool `json:"hasApproved,omitempty"`
	// Rejected: the pending spec was rejected.
	Rejected bool `json:"rejected,omitempty"`
	// Signed: annotations on the request name the author or the reason of a decision.
	Signed bool `json:"signed,omitempty"`
	// NotRequested: the tenant's spec is valid and neither the pending nor the approved one.
	NotRequested bool `json:"notRequested,omitempty"`
	// Present: the tenant's spec is the pending one: a decision on the pending spec decides on the tenant's.
	Present bool `json:"present,omitempty"`
	// Returned: the tenant's spec is the approved one.
	Returned bool `json:"returned,omitempty"`
	// CredentialMoved: the tenant's spec is the pending or the approved one, with another credential.
	CredentialMoved bool `json:"credentialMoved,omitempty"`
	// Changes are the differences between the approved and the pending spec, field by field; bounded.
	Changes []FieldChange `json:"changes,omitempty"`
	// PendingSince is when the pending spec was stored.
	PendingSince time.Time `json:"pendingSince,omitzero"`
	// Last is the decision that Holdfast acted on last; nil if there was none.
	Last *DecisionRecord `json:"last,omitempty"`
}

// FieldChange is one difference between two specs. From is empty for a field that is new, To for one that is removed.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// State returns how far the approval has come.
func (v ApprovalView) State() Approval {
	switch {
	case !v.Needed:
		return ApprovalNotRequired
	case v.HasPending && v.Rejected:
		return ApprovalRejected
	case v.HasPending || !v.HasApproved:
		return ApprovalPending
	}
	return ApprovalApproved
}
