package locationtest

import (
	"testing"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Situation is a state of a location in which a decision is made.
type Situation struct {
	Make func(t *testing.T) *fake.World
	// ByDecision is the expected result without a revocation; revoked is the one with a revocation, whatever the decision.
	ByDecision map[oadpv1alpha1.ApprovalDecision]Verdict
	Revoked    Verdict
}

// Verdict is the result of a decision. The specs are named by bucket and Secret; empty: there is none.
type Verdict struct {
	Pending, Approved string
	Reason            string // of the condition
	Decision          oadpv1alpha1.ApprovalDecision
	Last              contract.Decision // none: as before
	Acted             bool              // the decision's generation was handled
	Made              string            // the Velero BackupStorageLocation's bucket, in the end
}

// Reasons of the condition ClusterAdminApproved.
const (
	ReasonPending  = oadpv1alpha1.ReasonBSLSpecApprovalPending
	ReasonApproved = oadpv1alpha1.ReasonBSLSpecApproved
	ReasonRejected = oadpv1alpha1.ReasonBSLSpecRejected
)

// Situations are a location's specs, with what was decided about them.
func Situations() map[string]Situation {
	wait := func(v Verdict) map[oadpv1alpha1.ApprovalDecision]Verdict {
		none, pending := v, v
		pending.Decision = oadpv1alpha1.ApprovalDecisionPending
		return map[oadpv1alpha1.ApprovalDecision]Verdict{"": none, "pending": pending}
	}
	with := func(all map[oadpv1alpha1.ApprovalDecision]Verdict, approve, reject Verdict) map[oadpv1alpha1.ApprovalDecision]Verdict {
		approve.Decision, reject.Decision = "approve", "reject"
		all["approve"], all["reject"] = approve, reject
		return all
	}
	const first, second, moved = "bucket/keys", "second/keys", "bucket/other"
	moveless := Verdict{Approved: moved, Reason: ReasonApproved, Acted: true, Made: "bucket"}
	untouched := Verdict{Approved: first, Reason: ReasonApproved}
	return map[string]Situation{
		"first request": {
			Make: func(t *testing.T) *fake.World {
				world := Place(t, true)
				Settle(t, world)
				return world
			},
			ByDecision: with(wait(Verdict{Pending: first, Reason: ReasonPending}),
				Verdict{Approved: first, Reason: ReasonApproved, Last: "approve", Acted: true, Made: "bucket"},
				Verdict{Pending: first, Reason: ReasonRejected, Last: "reject", Acted: true}),
			Revoked: Verdict{Pending: first, Reason: ReasonPending, Decision: "pending"},
		},
		"update of the spec": {
			Make: func(t *testing.T) *fake.World {
				world := Approved(t)
				EditLocation(Bucket("second"))(world)
				Settle(t, world)
				return world
			},
			ByDecision: with(wait(Verdict{Pending: second, Approved: first, Reason: ReasonPending, Made: "bucket"}),
				Verdict{Approved: second, Reason: ReasonApproved, Last: "approve", Acted: true, Made: "second"},
				Verdict{Pending: second, Approved: first, Reason: ReasonRejected, Last: "reject", Acted: true, Made: "bucket"}),
			Revoked: Verdict{Pending: second, Reason: ReasonPending, Decision: "pending", Last: "revoke"},
		},
		"update of the credentials only": {
			Make: func(t *testing.T) *fake.World {
				world := Approved(t, fake.Secret("other", fake.Credentials("Other")))
				EditLocation(Credential("other"))(world)
				Settle(t, world)
				return world
			},
			ByDecision: with(wait(moveless), moveless, moveless),
			Revoked:    Verdict{Pending: moved, Reason: ReasonPending, Decision: "pending", Last: "revoke"},
		},
		"during deletion": {
			Make: func(t *testing.T) *fake.World {
				world := Approved(t)
				RemoveLocation(world)
				return world
			},
			ByDecision: with(wait(untouched), untouched, untouched),
			Revoked:    Verdict{Approved: first, Reason: ReasonApproved},
		},
	}
}
