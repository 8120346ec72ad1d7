package approval_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

func TestDecisionTable(t *testing.T) {
	for title, s := range situations() {
		for decision, want := range s.ByDecision {
			for _, revoked := range []bool{false, true} {
				if revoked {
					kept := want.Decision
					want = s.Revoked
					if want.Decision == "" {
						want.Decision = kept // nobody acts on it
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
					world := s.Make(t)
					before := world.ApprovalRequest(workflowtest.Backup).Status.LastDecision
					world.Decide(workflowtest.Backup, func(r *locationtest.Request) {
						r.Spec = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestSpec{
							PendingApprovalDecision: decision, RevokeApprovedSpec: revoked,
						}
					})
					decided := world.ApprovalRequest(workflowtest.Backup).Generation
					require.NoError(t, locationtest.ServeApproval(world))
					assertVerdict(t, world, want, before, decided)
					assert.Equal(t, revoked && title == "during deletion", world.ApprovalRequest(workflowtest.Backup).Spec.RevokeApprovedSpec)

					locationtest.Settle(t, world)
					assert.Equal(t, want.Made, locationtest.BucketOf(world))
					assert.Equal(t, want.Made != "", world.Copy(workflowtest.Backup) != nil, "the Secret goes and comes with it")
					if title != "during deletion" {
						assertVerdict(t, world, want, before, decided)
					} else {
						assert.Nil(t, world.Location(workflowtest.Backup))
						assert.Nil(t, world.ApprovalRequest(workflowtest.Backup))
					}
				})
			}
		}
	}
}

func assertVerdict(t *testing.T, world *fake.World, want verdict, before *oadpv1alpha1.ApprovalRecord, decided int64) {
	t.Helper()
	got := world.ApprovalRequest(workflowtest.Backup)
	asked := got.Status.VeleroBackupStorageLocationApprovalRequest
	assert.Equal(t, want.Pending, called(asked.PendingSpec), "pendingSpec")
	assert.Equal(t, want.Approved, called(asked.ApprovedSpec), "approvedSpec")
	condition := meta.FindStatusCondition(got.Status.Conditions, "ClusterAdminApproved")
	assert.Equal(t, want.Reason, condition.Reason)
	assert.Equal(t, want.Decision, got.Spec.PendingApprovalDecision)
	if want.Acted {
		assert.Equal(t, got.Generation, got.Status.ObservedGeneration)
	}
	if want.Last == "" {
		assert.Equal(t, before, got.Status.LastDecision)
	} else {
		last := got.Status.LastDecision
		require.NotNil(t, last)
		assert.Equal(t, oadpv1alpha1.RecordedDecision(want.Last), last.Decision)
		assert.Equal(t, decided, last.ObservedGeneration, "of the request that held the decision")
		assert.Equal(t, "kubectl, see the API server's audit log", last.DecidedBy)
	}
	objects := world.Gather(workflowtest.Backup, false)
	spec, _ := objects.InForce()
	if objects.Location.DeletionTimestamp.IsZero() {
		assert.Equal(t, want.Approved, called(spec), "in force")
	} else {
		assert.Nil(t, spec, "nothing is in force of what is being deleted")
	}
}

// called names a spec by its bucket and its Secret.
func called(spec *locationtest.VeleroLS) string {
	if spec == nil {
		return ""
	}
	return spec.ObjectStorage.Bucket + "/" + spec.Credential.Name
}
