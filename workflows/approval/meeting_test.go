package approval_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// Two administrators decide about the same version: one of them has to look again.
func TestOfTwoDecisionsOneHasToLookAgain(t *testing.T) {
	world := situations()["first request"].Make(t)
	decision := shown(world, "approve")
	other := decision
	other.Decision = contract.DecisionReject
	var first, second *answer
	require.NoError(t, locationtest.ServeApproval(world, func(s *workflowtest.Scenario) {
		s.RegisterDelayedCallback(func() {
			first, second = update(s, "first", decision), update(s, "second", other)
		}, time.Second)
	}))
	require.NoError(t, first.err)
	assert.Equal(t, contract.ApprovalApproved, first.outcome.State)
	refusedAs(t, second.err, contract.ErrorLookAgain)
	locationtest.Settle(t, world)
	assert.Equal(t, "bucket", locationtest.BucketOf(world))
}

// kubectl and an Update at the same moment: the result is one of the two, and the same everywhere.
func TestADecisionByKubectlMeetsOneByUpdate(t *testing.T) {
	tests := map[string]func(world *fake.World, kubectl func()){
		"kubectl is first": func(world *fake.World, kubectl func()) {
			world.Fail(func(verb string, object client.Object) error {
				if _, is := object.(*locationtest.Request); is && verb == "patch" {
					world.Fail(nil)
					kubectl()
				}
				return nil
			})
		},
		"the Update is first": func(world *fake.World, kubectl func()) {
			world.Lose(func(verb string, object client.Object) error {
				if _, is := object.(*locationtest.Request); is && verb == "patch" {
					world.Lose(nil)
					kubectl()
				}
				return nil
			})
		},
	}
	for title, arrange := range tests {
		t.Run(title, func(t *testing.T) {
			world := situations()["update of the spec"].Make(t)
			decision := shown(world, "approve")
			arrange(world, func() { locationtest.Decide("reject")(world) })
			a := updated(t, world, decision)
			locationtest.Settle(t, world)
			view := world.Gather(workflowtest.Backup, false).Approval()
			assert.Equal(t, contract.ApprovalRejected, view.State(), "the API server had this one last")
			assert.Equal(t, "bucket", locationtest.BucketOf(world))
			if title == "kubectl is first" {
				refusedAs(t, a.err, contract.ErrorLookAgain)
			} else {
				require.NoError(t, a.err)
				assert.Equal(t, contract.ApprovalRejected, a.outcome.State, "the answer is what came of it")
			}
		})
	}
}

// The tenant edits the spec right after the decision about it was written: nobody is told that it was carried out.
func TestADecisionByUpdateMeetsAnEditOfTheTenant(t *testing.T) {
	for title, make := range map[string]func(*testing.T) *fake.World{
		"first request": situations()["first request"].Make, "update": situations()["update of the spec"].Make,
	} {
		t.Run(title, func(t *testing.T) {
			world := make(t)
			justAfter(world, "patch", locationtest.EditLocation(locationtest.Bucket("third")))
			a := updated(t, world, shown(world, "approve"))
			require.True(t, a.completed)
			refusedAs(t, a.err, contract.ErrorLookAgain)
			locationtest.Settle(t, world)
			assert.Equal(t, "third/keys", called(world.ApprovalRequest(workflowtest.Backup).Status.VeleroBackupStorageLocationApprovalRequest.PendingSpec))
			assert.NotEqual(t, "third", locationtest.BucketOf(world))
		})
	}
}

// A version that comes of a label, or of an edit with which nothing is due, is not told to the workflow.
func TestWhoHasToLookAgainSeesWhatThereIs(t *testing.T) {
	world := situations()["first request"].Make(t)
	old := shown(world, "approve")
	var first, second *answer
	require.NoError(t, locationtest.ServeApproval(world, func(s *workflowtest.Scenario) {
		s.RegisterDelayedCallback(func() {
			world.Decide(workflowtest.Backup, func(r *locationtest.Request) { r.Labels["seen"] = "by-another" })
			assert.Contains(t, workflowtest.CurrentDetails(t, s), old.ResourceVersion)
			first = update(s, "first", old)
		}, time.Second)
		s.RegisterDelayedCallback(func() {
			answer, err := s.QueryWorkflow(contract.QueryState)
			require.NoError(t, err)
			var state contract.State[contract.ApprovalView]
			require.NoError(t, answer.Get(&state))
			assert.Contains(t, workflowtest.CurrentDetails(t, s), state.View.ResourceVersion)
			again := old
			again.ResourceVersion = state.View.ResourceVersion
			second = update(s, "second", again)
		}, 2*time.Second)
	}))
	refusedAs(t, first.err, contract.ErrorLookAgain)
	require.NoError(t, second.err)
	assert.Equal(t, contract.ApprovalApproved, second.outcome.State)
}

func TestADecisionThatWaitsIsShown(t *testing.T) {
	world := situations()["first request"].Make(t)
	locationtest.EditLocation(func(spec *locationtest.VeleroLS) { spec.Provider = "" })(world)
	locationtest.Settle(t, world)
	assert.NotContains(t, signalled(t, world), "is on hold")
	locationtest.Decide("approve")(world)
	assert.Contains(t, signalled(t, world), "Decision *approve* is on hold")
}
