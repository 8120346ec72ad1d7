package approval_test

import (
	"testing"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location/locationtest"
)

// situation is a state of a location in which a decision is made.
type situation struct {
	Make func(t *testing.T) *fake.World
	// ByDecision is the expected result without a revocation; revoked is the one with a revocation, whatever the decision.
	ByDecision map[oadpv1alpha1.ApprovalDecision]verdict
	Revoked    verdict
}

// verdict is the result of a decision. The specs are named by bucket and Secret; empty: there is none.
type verdict struct {
	Pending, Approved string
	Reason            string // of the condition
	Decision          oadpv1alpha1.ApprovalDecision
	Last              contract.Decision // none: as before
	Acted             bool              // the decision's generation was handled
	Made              string            // the Velero BackupStorageLocation's bucket, in the end
}

// Reasons of the condition ClusterAdminApproved.
const (
	reasonPending  = oadpv1alpha1.ReasonBSLSpecApprovalPending
	reasonApproved = oadpv1alpha1.ReasonBSLSpecApproved
	reasonRejected = oadpv1alpha1.ReasonBSLSpecRejected
)

// situations are a location's specs, with what was decided about them.
func situations() map[string]situation {
	wait := func(v verdict) map[oadpv1alpha1.ApprovalDecision]verdict {
		none, pending := v, v
		pending.Decision = oadpv1alpha1.ApprovalDecisionPending
		return map[oadpv1alpha1.ApprovalDecision]verdict{"": none, "pending": pending}
	}
	with := func(all map[oadpv1alpha1.ApprovalDecision]verdict, approve, reject verdict) map[oadpv1alpha1.ApprovalDecision]verdict {
		approve.Decision, reject.Decision = "approve", "reject"
		all["approve"], all["reject"] = approve, reject
		return all
	}
	const first, second, moved = "bucket/keys", "second/keys", "bucket/other"
	moveless := verdict{Approved: moved, Reason: reasonApproved, Acted: true, Made: "bucket"}
	untouched := verdict{Approved: first, Reason: reasonApproved}
	return map[string]situation{
		"first request": {
			Make: func(t *testing.T) *fake.World {
				world := locationtest.Place(t, true)
				locationtest.Settle(t, world)
				return world
			},
			ByDecision: with(wait(verdict{Pending: first, Reason: reasonPending}),
				verdict{Approved: first, Reason: reasonApproved, Last: "approve", Acted: true, Made: "bucket"},
				verdict{Pending: first, Reason: reasonRejected, Last: "reject", Acted: true}),
			Revoked: verdict{Pending: first, Reason: reasonPending, Decision: "pending"},
		},
		"update of the spec": {
			Make: func(t *testing.T) *fake.World {
				world := locationtest.Approved(t)
				locationtest.EditLocation(locationtest.Bucket("second"))(world)
				locationtest.Settle(t, world)
				return world
			},
			ByDecision: with(wait(verdict{Pending: second, Approved: first, Reason: reasonPending, Made: "bucket"}),
				verdict{Approved: second, Reason: reasonApproved, Last: "approve", Acted: true, Made: "second"},
				verdict{Pending: second, Approved: first, Reason: reasonRejected, Last: "reject", Acted: true, Made: "bucket"}),
			Revoked: verdict{Pending: second, Reason: reasonPending, Decision: "pending", Last: "revoke"},
		},
		"update of the credentials only": {
			Make: func(t *testing.T) *fake.World {
				world := locationtest.Approved(t, fake.Secret("other", fake.Credentials("Other")))
				locationtest.EditLocation(locationtest.Credential("other"))(world)
				locationtest.Settle(t, world)
				return world
			},
			ByDecision: with(wait(moveless), moveless, moveless),
			Revoked:    verdict{Pending: moved, Reason: reasonPending, Decision: "pending", Last: "revoke"},
		},
		"during deletion": {
			Make: func(t *testing.T) *fake.World {
				world := locationtest.Approved(t)
				locationtest.RemoveLocation(world)
				return world
			},
			ByDecision: with(wait(untouched), untouched, untouched),
			Revoked:    verdict{Approved: first, Reason: reasonApproved},
		},
	}
}
