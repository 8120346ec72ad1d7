package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// situation is where a decision meets a location.
type situation struct {
	make func(t *testing.T) *fake.World
	// byDecision says what must be afterwards, without a revocation; revoked with one, whatever the decision.
	byDecision map[oadpv1alpha1.ApprovalDecision]verdict
	revoked    verdict
}

// verdict is what a decision comes to. The specs are named by bucket and Secret; empty: there is none.
type verdict struct {
	pending, approved string
	reason            string // of the condition
	decision          oadpv1alpha1.ApprovalDecision
	last              contract.Decision // none: as before
	acted             bool              // the decision's generation is acted on
	made              string            // the Velero BackupStorageLocation's bucket, in the end
}

const (
	reasonPending  = oadpv1alpha1.ReasonBSLSpecApprovalPending
	reasonApproved = oadpv1alpha1.ReasonBSLSpecApproved
	reasonRejected = oadpv1alpha1.ReasonBSLSpecRejected
)

// situations are those of the decision table of seed 001.
func situations() map[string]situation {
	wait := func(v verdict) map[oadpv1alpha1.ApprovalDecision]verdict {
		none, pending := v, v
		pending.decision = oadpv1alpha1.ApprovalDecisionPending
		return map[oadpv1alpha1.ApprovalDecision]verdict{"": none, "pending": pending}
	}
	with := func(all map[oadpv1alpha1.ApprovalDecision]verdict, approve, reject verdict) map[oadpv1alpha1.ApprovalDecision]verdict {
		approve.decision, reject.decision = "approve", "reject"
		all["approve"], all["reject"] = approve, reject
		return all
	}
	const first, second, moved = "bucket/keys", "second/keys", "bucket/other"
	moveless := verdict{approved: moved, reason: reasonApproved, acted: true, made: "bucket"}
	untouched := verdict{approved: first, reason: reasonApproved}
	return map[string]situation{
		"first request": {
			make: func(t *testing.T) *fake.World {
				world := place(t, true)
				settle(t, world)
				return world
			},
			byDecision: with(wait(verdict{pending: first, reason: reasonPending}),
				verdict{approved: first, reason: reasonApproved, last: "approve", acted: true, made: "bucket"},
				verdict{pending: first, reason: reasonRejected, last: "reject", acted: true}),
			revoked: verdict{pending: first, reason: reasonPending, decision: "pending"},
		},
		"update of the spec": {
			make: func(t *testing.T) *fake.World {
				world := approved(t)
				editLocation(bucket("second"))(world)
				settle(t, world)
				return world
			},
			byDecision: with(wait(verdict{pending: second, approved: first, reason: reasonPending, made: "bucket"}),
				verdict{approved: second, reason: reasonApproved, last: "approve", acted: true, made: "second"},
				verdict{pending: second, approved: first, reason: reasonRejected, last: "reject", acted: true, made: "bucket"}),
			revoked: verdict{pending: second, reason: reasonPending, decision: "pending", last: "revoke"},
		},
		"update of the credentials only": {
			make: func(t *testing.T) *fake.World {
				world := approved(t, fake.Secret("other", fake.Credentials("Other")))
				editLocation(credential("other"))(world)
				settle(t, world)
				return world
			},
			byDecision: with(wait(moveless), moveless, moveless),
			revoked:    verdict{pending: moved, reason: reasonPending, decision: "pending", last: "revoke"},
		},
		"during deletion": {
			make: func(t *testing.T) *fake.World {
				world := approved(t)
				removeLocation(world)
				return world
			},
			byDecision: with(wait(untouched), untouched, untouched),
			revoked:    verdict{approved: first, reason: reasonApproved},
		},
	}
}

func TestDecisionTable(t *testing.T) {
	for title, s := range situations() {
		for decision, want := range s.byDecision {
			for _, revoked := range []bool{false, true} {
				if revoked {
					kept := want.decision
					want = s.revoked
					if want.decision == "" {
						want.decision = kept // nobody acts on it
					}
				}
				row := "not set"
				if decision != "" {
					row = string(decision)
				}
				if revoked {
					row += " and revoke"
				}
				t.Run(title+"/"+row, func(t *testing.T) {
					world := s.make(t)
					before := world.ApprovalRequest(name).Status.LastDecision
					world.Decide(name, func(r *request) {
						r.Spec = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestSpec{
							PendingApprovalDecision: decision, RevokeApprovedSpec: revoked,
						}
					})
					decided := world.ApprovalRequest(name).Generation
					require.NoError(t, serveApproval(world))
					assertVerdict(t, world, want, before, decided)
					assert.Equal(t, revoked && title == "during deletion", world.ApprovalRequest(name).Spec.RevokeApprovedSpec)

					settle(t, world)
					assert.Equal(t, want.made, bucketOf(world))
					assert.Equal(t, want.made != "", world.Copy(name) != nil, "the Secret goes and comes with it")
					if title != "during deletion" {
						assertVerdict(t, world, want, before, decided)
					} else {
						assert.Nil(t, world.Location(name))
						assert.Nil(t, world.ApprovalRequest(name))
					}
				})
			}
		}
	}
}

func assertVerdict(t *testing.T, world *fake.World, want verdict, before *oadpv1alpha1.ApprovalRecord, decided int64) {
	t.Helper()
	got := world.ApprovalRequest(name)
	asked := got.Status.VeleroBackupStorageLocationApprovalRequest
	assert.Equal(t, want.pending, called(asked.PendingSpec), "pendingSpec")
	assert.Equal(t, want.approved, called(asked.ApprovedSpec), "approvedSpec")
	condition := meta.FindStatusCondition(got.Status.Conditions, "ClusterAdminApproved")
	assert.Equal(t, want.reason, condition.Reason)
	assert.Equal(t, want.decision, got.Spec.PendingApprovalDecision)
	if want.acted {
		assert.Equal(t, got.Generation, got.Status.ObservedGeneration)
	}
	if want.last == "" {
		assert.Equal(t, before, got.Status.LastDecision)
	} else {
		last := got.Status.LastDecision
		require.NotNil(t, last)
		assert.Equal(t, string(want.last), last.Decision)
		assert.Equal(t, decided, last.ObservedGeneration, "of the request that held the decision")
		assert.Equal(t, "kubectl, see the API server's audit log", last.DecidedBy)
	}
	objects := world.Gather(name, false)
	spec, _ := objects.InForce()
	if objects.Location.DeletionTimestamp.IsZero() {
		assert.Equal(t, want.approved, called(spec), "in force")
	} else {
		assert.Nil(t, spec, "nothing is in force of what is being deleted")
	}
}

// called names a spec by its bucket and its Secret.
func called(spec *veleroLS) string {
	if spec == nil {
		return ""
	}
	return spec.ObjectStorage.Bucket + "/" + spec.Credential.Name
}
