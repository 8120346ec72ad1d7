package contract

import "time"

// KindApproval carries out what administrators decide about one NonAdminBackupStorageLocation, which is its object. It is open as
// long as that exists and needs approval. Input: ObjectInput, no result. It takes SignalDecide, too.
var KindApproval = Kind{
	Workflow: "StorageLocationApproval", ID: "approval", Kubernetes: "NonAdminBackupStorageLocationApprovalRequest",
	Summary: "Approval of storage location",
}

// How a decision comes through Temporal.
const (
	// UpdateDecide decides. Payload: DecisionRequest, answer: DecisionOutcome.
	UpdateDecide = "decide"
	// SignalDecide decides without an answer; what came of it is in the current details. Payload: DecisionRequest.
	SignalDecide = "decide"
)

type approvalActivity = Activity[ApprovalStep, ApprovalView]

// Activities of the StorageLocationApproval workflow. Each but the last takes an ApprovalStep; all return the ApprovalView
// after their effect, and may be repeated at any time.
var (
	RefreshApproval = approvalActivity{"refresh-approval", "Read the approval request"}
	// AdvanceApproval writes what is due to the approval request, see location.NextApproval.
	AdvanceApproval = approvalActivity{"advance-approval", "Carry out what was decided or asked"}
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
	// ErrorLookAgain: the approval request has changed since the administrator looked at it.
	ErrorLookAgain = "LookAgain"
	// ErrorDecisionsOff: decisions through Temporal do not count (--approve-through-temporal).
	ErrorDecisionsOff = "DecisionsOff"
)

// ApprovalStep is the input of the activities that serve an approval.
type ApprovalStep struct {
	Ref ObjectRef `json:"ref"`
}

// DecisionRequest is what an administrator sends by UpdateDecide or SignalDecide.
type DecisionRequest struct {
	Decision Decision `json:"decision"`
	// Reason is written to the approval request for all administrators to read; required.
	Reason string `json:"reason"`
	// ResourceVersion is that of the approval request that the administrator looked at: the query and the current details
	// show it. If it has changed, the decision is refused.
	ResourceVersion string `json:"resourceVersion"`
}

// DecisionStep is the input of DecideApproval.
type DecisionStep struct {
	Ref     ObjectRef       `json:"ref"`
	Request DecisionRequest `json:"request"`
	// UpdateID or SignalNumber (from 1, in this run) says which event of the history brought the request, and so whose it is.
	UpdateID     string `json:"updateID,omitempty"`
	SignalNumber int    `json:"signalNumber,omitempty"`
}

// DecisionOutcome answers UpdateDecide.
type DecisionOutcome struct {
	Decided DecisionRecord `json:"decided"`
	// State is the approval's afterwards.
	State Approval `json:"state"`
}

// DecisionRecord says what was decided, by whom, when and why.
type DecisionRecord struct {
	Decision Decision  `json:"decision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason,omitempty"`
	// Generation of the approval request that held it.
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
	// ApprovalRevoke takes back what was approved and asks again.
	ApprovalRevoke ApprovalAction = "revoke"
	// ApprovalAsk stores a new spec as pending.
	ApprovalAsk ApprovalAction = "request"
	// ApprovalReset sets the decision to pending, after a new spec was stored.
	ApprovalReset ApprovalAction = "reset"
	// ApprovalApprove makes the pending spec the approved one.
	ApprovalApprove ApprovalAction = "approve"
	// ApprovalReject refuses the pending spec.
	ApprovalReject ApprovalAction = "reject"
	// ApprovalReopen takes back a rejection.
	ApprovalReopen ApprovalAction = "reopen"
	// ApprovalDrop forgets a pending spec, because the tenant has returned to the approved one.
	ApprovalDrop ApprovalAction = "drop"
	// ApprovalFollow notes that the tenant's credential is another one, which needs no approval.
	ApprovalFollow ApprovalAction = "follow"
	// ApprovalTidy takes off the annotations of a decision that status.lastDecision holds, so that the next one, by whatever
	// way, is not taken for that person's or given that reason.
	ApprovalTidy ApprovalAction = "tidy"
	// ApprovalObserve notes a decision when there was nothing to decide.
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
	// Decision and Revoke repeat its spec.
	Decision string `json:"decision,omitempty"`
	Revoke   bool   `json:"revoke,omitempty"`
	// Fresh: its spec has changed since it was last acted on.
	Fresh bool `json:"fresh,omitempty"`
	// HasPending, HasApproved: its status holds a pending, an approved spec.
	HasPending  bool `json:"hasPending,omitempty"`
	HasApproved bool `json:"hasApproved,omitempty"`
	// Rejected: the pending spec was rejected.
	Rejected bool `json:"rejected,omitempty"`
	// Signed: annotations on the request speak of a decision.
	Signed bool `json:"signed,omitempty"`
	// NotRequested: the tenant's spec is valid and neither the pending nor the approved one.
	NotRequested bool `json:"notRequested,omitempty"`
	// Present: the tenant's spec is the pending one: a decision about that is a decision about this.
	Present bool `json:"present,omitempty"`
	// Returned: the tenant's spec is the approved one.
	Returned bool `json:"returned,omitempty"`
	// CredentialMoved: the tenant's spec is the pending or the approved one, with another credential.
	CredentialMoved bool `json:"credentialMoved,omitempty"`
	// Changes are what the pending spec would change of the approved one, field by field; bounded.
	Changes []FieldChange `json:"changes,omitempty"`
	// PendingSince is when the pending spec was stored.
	PendingSince time.Time `json:"pendingSince,omitzero"`
	// Last is the decision acted on last.
	Last *DecisionRecord `json:"last,omitempty"`
}

// FieldChange is one difference between two specs. From is empty for a field that is new, To for one that goes.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// State tells how far the approval has come.
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

// ApprovalState answers QueryState.
type ApprovalState struct {
	View ApprovalView `json:"view"`
}
