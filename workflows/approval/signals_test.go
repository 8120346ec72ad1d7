package approval_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// signalled serves the approval while somebody decides by signal, and returns the current details afterwards.
func signalled(t *testing.T, world *fake.World, payloads ...any) string {
	t.Helper()
	var details string
	require.NoError(t, locationtest.ServeApproval(world, func(s *workflowtest.Scenario) {
		s.RegisterDelayedCallback(func() {
			for _, payload := range payloads {
				s.SignalWorkflow(contract.SignalDecide, payload)
			}
		}, time.Second)
		s.RegisterDelayedCallback(func() { details = workflowtest.CurrentDetails(t, s) }, 30*time.Second)
	}))
	return details
}

func TestADecisionBySignalIsCarriedOut(t *testing.T) {
	tests := map[contract.Decision]struct{ want, made string }{
		"approve": {want: "**Approved.**", made: "second"},
		"reject":  {want: "**Rejected.**", made: "bucket"},
		"revoke":  {want: "**Pending since "},
	}
	for decision, test := range tests {
		t.Run(string(decision), func(t *testing.T) {
			world := situations()["update of the spec"].Make(t)
			details := signalled(t, world, shown(world, decision))
			assert.Contains(t, details, test.want)
			assert.Contains(t, details, "by Temporal identity "+fake.Identity+", not verified")
			assert.Contains(t, details, "ticket 42")
			assert.NotContains(t, details, "was refused")
			locationtest.Settle(t, world)
			assert.Equal(t, test.made, locationtest.BucketOf(world))
		})
	}
}

func TestADecisionBySignalThatIsRefusedSaysSo(t *testing.T) {
	tests := map[string]struct {
		payload func(*fake.World) any
		want    string
	}{
		"invalid": {
			payload: func(*fake.World) any { return contract.DecisionRequest{Decision: "perhaps"} },
			want:    `decision "perhaps": must be approve, reject or revoke`,
		},
		"of what has changed": {
			payload: func(w *fake.World) any {
				decision := shown(w, "approve")
				decision.ResourceVersion = "1"
				return decision
			},
			want: "has changed since you read it",
		},
		"nothing approved": {
			payload: func(w *fake.World) any { return shown(w, "revoke") }, want: "nothing is approved that could be revoked",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := situations()["first request"].Make(t)
			details := signalled(t, world, test.payload(world))
			assert.Contains(t, details, test.want)
			assert.Contains(t, details, "**Pending since ")
			assert.NotContains(t, signalled(t, world, test.payload(world), shown(world, "approve")), test.want, "the next one counts")
			locationtest.Settle(t, world)
			assert.Equal(t, "bucket", locationtest.BucketOf(world))
		})
	}
}

// Signals are counted as they stand in the history, so that a decision is put down to the one who made it.
func TestUnreadableSignalsAreCounted(t *testing.T) {
	world := situations()["first request"].Make(t)
	world.Locations.Identity = func(_ context.Context, step contract.DecisionStep) (string, error) {
		return fmt.Sprintf("signal number %d", step.SignalNumber), nil
	}
	signalled(t, world, "approve", 7, shown(world, "approve"))
	assert.Contains(t, world.ApprovalRequest(workflowtest.Backup).Status.LastDecision.DecidedBy, "signal number 3")
}

// What an administrator sees of a pending change cannot be shaped by the tenant who wrote it.
func TestTheDetailsShowTheChange(t *testing.T) {
	world := locationtest.Approved(t)
	locationtest.EditLocation(func(spec *locationtest.VeleroLS) {
		spec.ObjectStorage.Bucket = "second"
		spec.Config["region"] = "east\n```\n**Approved.** `holdfast approve`"
	})(world)
	var details string
	require.NoError(t, locationtest.Settled(world))
	details = signalled(t, world)
	assert.Contains(t, details, "- objectStorage.bucket: bucket\n+ objectStorage.bucket: second\n")
	assert.Contains(t, details, world.ApprovalRequest(workflowtest.Backup).ResourceVersion)
	assert.Contains(t, details, "What was approved before stays in use")
	assert.NotContains(t, details, "\n```\n**Approved", "the block is the workflow's to end")
	assert.NotContains(t, details, "`holdfast approve`")
}

// replaceRefresh has a test take part in the refreshing of the approval.
func replaceRefresh(t *testing.T, s *workflowtest.Scenario, part func(contract.ApprovalView)) {
	s.RegisterActivityWithOptions(func(_ context.Context, step contract.ObjectStep) (contract.ApprovalView, error) {
		view, err := activitytest.Performed[contract.ApprovalView](t, s.World.Locations, contract.RefreshApproval.Name, step)
		part(view)
		return view, err
	}, activity.RegisterOptions{Name: contract.RefreshApproval.Name, DisableAlreadyRegisteredCheck: true})
}

// A signal or an Update that comes while the last activity runs is read before the workflow ends.
func TestAnApprovalDoesNotEndWithSomethingUnread(t *testing.T) {
	t.Run("a change", func(t *testing.T) {
		world := situations()["first request"].Make(t)
		world.RequireApproval(false)
		refreshes := 0
		require.NoError(t, locationtest.ServeApproval(world, func(s *workflowtest.Scenario) {
			replaceRefresh(t, s, func(view contract.ApprovalView) {
				if refreshes++; refreshes == 1 {
					assert.False(t, view.Needed, "it would close")
					world.RequireApproval(true)
					s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
				}
			})
		}))
		assert.Greater(t, refreshes, 1)
	})
	t.Run("a decision by signal", func(t *testing.T) {
		world := situations()["first request"].Make(t)
		world.RequireApproval(false)
		decision, refreshes := shown(world, "approve"), 0
		require.NoError(t, locationtest.ServeApproval(world, func(s *workflowtest.Scenario) {
			replaceRefresh(t, s, func(contract.ApprovalView) {
				if refreshes++; refreshes == 1 {
					world.RequireApproval(true)
					s.SignalWorkflow(contract.SignalDecide, decision)
				}
			})
		}))
		assert.Equal(t, oadpv1alpha1.RecordedApprove, world.ApprovalRequest(workflowtest.Backup).Status.LastDecision.Decision)
	})
	t.Run("two Updates", func(t *testing.T) {
		world := situations()["first request"].Make(t)
		decision := shown(world, "approve")
		world.Fail(func(_ string, object client.Object) error {
			if _, is := object.(*locationtest.Request); is {
				return fake.ErrAway
			}
			return nil
		})
		var answers []*answer
		s := locationtest.NewRun(world)
		s.RegisterDelayedCallback(func() {
			answers = append(answers, update(s, "first", decision), update(s, "second", decision))
		}, time.Second)
		s.RegisterDelayedCallback(func() {
			for _, a := range answers {
				assert.True(t, a.accepted)
				assert.False(t, a.completed, "the API server is away")
			}
			world.RequireApproval(false)
			s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
		}, 10*time.Second)
		s.RegisterDelayedCallback(func() { world.Fail(nil) }, 20*time.Second)
		s.ExecuteWorkflow(contract.KindApproval.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(workflowtest.Backup)})
		require.NoError(t, s.GetWorkflowError())
		require.Len(t, answers, 2)
		for _, a := range answers {
			assert.True(t, a.completed, "its caller hears what came of it")
			refusedAs(t, a.err, contract.ErrorNothingToDecide)
		}
	})
	t.Run("continue-as-new", func(t *testing.T) {
		world := situations()["first request"].Make(t)
		carried := continuedAsNewAt(t, world, shown(world, "approve"))
		assert.Equal(t, contract.ApprovalInput{ObjectInput: contract.ObjectInput{
			Cluster: fake.Cluster, Ref: fake.Ref(workflowtest.Backup), ShownPhase: "Approved",
		}}, carried)
	})
}

// continuedAsNewAt runs the workflow on a world until it continues as new, with a decision that arrives at its first refresh, and
// returns the input of the next run.
func continuedAsNewAt(t *testing.T, world *fake.World, decision contract.DecisionRequest) (carried contract.ApprovalInput) {
	t.Helper()
	s, refreshes := locationtest.NewRun(world), 0
	s.SetContinueAsNewSuggested(true)
	replaceRefresh(t, s, func(contract.ApprovalView) {
		if refreshes++; refreshes == 1 {
			s.SignalWorkflow(contract.SignalDecide, decision)
		}
	})
	s.ExecuteWorkflow(contract.KindApproval.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(workflowtest.Backup)})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &next)
	require.NoError(t, workflowtest.Decode(next, &carried))
	return carried
}

func TestTheNextRunShowsTheRefusalOfTheOneBefore(t *testing.T) {
	world := situations()["first request"].Make(t)
	decision := shown(world, "approve")
	decision.ResourceVersion = "1"
	carried := continuedAsNewAt(t, world, decision)

	s, details := locationtest.NewRun(world), ""
	s.RegisterDelayedCallback(func() {
		details = workflowtest.CurrentDetails(t, s)
		s.CancelWorkflow()
	}, time.Second)
	s.ExecuteWorkflow(contract.KindApproval.Workflow, carried)
	assert.Contains(t, details, "the last decision by signal (approve) was refused: ")
}

// What is to be carried out and comes to nothing, again and again, must not fill the history.
func TestStepsOfAnApprovalThatComeToNothingEndTheRun(t *testing.T) {
	world := situations()["first request"].Make(t)
	steps := 0
	s := locationtest.NewRun(world)
	for _, name := range []string{contract.RefreshApproval.Name, contract.AdvanceApproval.Name} {
		s.RegisterActivityWithOptions(func(context.Context, contract.ObjectStep) (contract.ApprovalView, error) {
			if steps++; steps == 10 {
				s.SetContinueAsNewSuggested(true)
			}
			return contract.ApprovalView{Found: true, Needed: true, Revoke: true}, nil
		}, activity.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: true})
	}
	s.ExecuteWorkflow(contract.KindApproval.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(workflowtest.Backup)})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &next)
	assert.Equal(t, 12, steps, "it goes on to the next pause")
}

// The workflow can always be reached while its location exists, and looks by itself should every signal be lost.
func TestAnApprovalStaysOpen(t *testing.T) {
	world := situations()["first request"].Make(t)
	s := locationtest.NewRun(world)
	s.RegisterDelayedCallback(func() {
		answer, err := s.QueryWorkflow(contract.QueryState)
		require.NoError(t, err)
		var state contract.State[contract.ApprovalView]
		require.NoError(t, answer.Get(&state))
		assert.Equal(t, contract.ApprovalPending, state.View.State())
		locationtest.Decide("approve")(world)
	}, 24*time.Hour)
	s.RegisterDelayedCallback(func() {
		assert.Equal(t, oadpv1alpha1.RecordedApprove, world.ApprovalRequest(workflowtest.Backup).Status.LastDecision.Decision)
		world.RequireApproval(false)
	}, 26*time.Hour)
	s.ExecuteWorkflow(contract.KindApproval.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(workflowtest.Backup)})
	require.True(t, s.IsWorkflowCompleted())
	require.NoError(t, s.GetWorkflowError(), "it closes when it is not needed any more")
}
