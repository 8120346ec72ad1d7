package approval_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// answer is what an Update came to.
type answer struct {
	accepted, completed bool
	outcome             contract.DecisionOutcome
	err                 error
}

// update sends UpdateDecide now.
func update(s *workflowtest.Scenario, id string, request contract.DecisionRequest) *answer {
	a := &answer{}
	s.UpdateWorkflow(contract.UpdateDecide, id, &testsuite.TestUpdateCallback{
		OnAccept: func() { a.accepted = true },
		OnReject: func(err error) { a.err = err },
		OnComplete: func(result any, err error) {
			a.completed, a.err = true, err
			if outcome, ok := result.(contract.DecisionOutcome); ok {
				a.outcome = outcome
			}
		},
	}, request)
	return a
}

// shown is a decision by somebody who looks at the request now.
func shown(world *fake.World, decision contract.Decision) contract.DecisionRequest {
	version := "7"
	if request := world.ApprovalRequest(workflowtest.Backup); request != nil {
		version = request.ResourceVersion
	}
	return contract.DecisionRequest{Decision: decision, Reason: "ticket 42", ResourceVersion: version}
}

// updated serves the approval while somebody decides by Update.
func updated(t *testing.T, world *fake.World, decision contract.DecisionRequest) *answer {
	t.Helper()
	var a *answer
	require.NoError(t, locationtest.ServeApproval(world, func(s *workflowtest.Scenario) {
		s.RegisterDelayedCallback(func() { a = update(s, "update-"+string(decision.Decision), decision) }, time.Second)
	}))
	return a
}

func refusedAs(t *testing.T, err error, kind string) {
	t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	assert.Equal(t, kind, application.Type(), application.Message())
	assert.True(t, application.NonRetryable())
}

func TestADecisionByUpdateIsCarriedOutAndAnswered(t *testing.T) {
	tests := map[string]struct {
		world    func(*testing.T) *fake.World
		decision contract.Decision
		state    contract.Approval
		made     string
	}{
		"approve": {world: situations()["first request"].Make, decision: "approve", state: contract.ApprovalApproved, made: "bucket"},
		"reject":  {world: situations()["first request"].Make, decision: "reject", state: contract.ApprovalRejected},
		"approve an update": {
			world: situations()["update of the spec"].Make, decision: "approve", state: contract.ApprovalApproved, made: "second",
		},
		"reject an update": {
			world: situations()["update of the spec"].Make, decision: "reject", state: contract.ApprovalRejected, made: "bucket",
		},
		"revoke": {world: situations()["update of the spec"].Make, decision: "revoke", state: contract.ApprovalPending},
		"approve what was rejected": {
			world: func(t *testing.T) *fake.World {
				world := situations()["update of the spec"].Make(t)
				locationtest.Decide("reject")(world)
				locationtest.Settle(t, world)
				return world
			}, decision: "approve", state: contract.ApprovalApproved, made: "second",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := test.world(t)
			before := time.Now().Add(-time.Second)
			a := updated(t, world, shown(world, test.decision))
			require.True(t, a.completed)
			require.NoError(t, a.err)
			assert.Equal(t, test.state, a.outcome.State)
			assert.Equal(t, test.decision, a.outcome.Decided.Decision)
			assert.Equal(t, "Temporal identity "+fake.Identity+", not verified", a.outcome.Decided.By)
			assert.Equal(t, "ticket 42", a.outcome.Decided.Reason)
			assert.True(t, a.outcome.Decided.At.After(before), "now, not %s", a.outcome.Decided.At)
			assert.Equal(t, a.outcome.Decided.Reason, world.ApprovalRequest(workflowtest.Backup).Status.LastDecision.Reason)
			locationtest.Settle(t, world)
			assert.Equal(t, test.made, locationtest.BucketOf(world))
		})
	}
}

// What is wrong in itself is refused before it leaves a trace in the history.
func TestADecisionThatCannotBeOneIsRefusedByTheValidator(t *testing.T) {
	good := contract.DecisionRequest{Decision: "approve", Reason: "ticket 42", ResourceVersion: "1"}
	tests := map[string]func(*contract.DecisionRequest){
		"no decision":          func(r *contract.DecisionRequest) { r.Decision = "" },
		"an unknown decision":  func(r *contract.DecisionRequest) { r.Decision = "pending" },
		"no reason":            func(r *contract.DecisionRequest) { r.Reason = " \n" },
		"too long a reason":    func(r *contract.DecisionRequest) { r.Reason = string(make([]byte, 513)) },
		"no resourceVersion":   func(r *contract.DecisionRequest) { r.ResourceVersion = "" },
		"a decision in Polish": func(r *contract.DecisionRequest) { r.Decision = "zatwierdź" },
	}
	for title, spoil := range tests {
		t.Run(title, func(t *testing.T) {
			world := locationtest.Place(t, true)
			locationtest.Settle(t, world)
			bad := good
			spoil(&bad)
			a := updated(t, world, bad)
			assert.False(t, a.accepted)
			refusedAs(t, a.err, contract.ErrorDecisionInvalid)
		})
	}
}

func decisionsOff(w *fake.World) {
	w.Locations.DecisionsOff = func() error { return errors.New("it asks nobody") }
}

// Who is refused because of the way learns the reason and the other ways.
func TestARefusedDecisionNamesTheOtherWays(t *testing.T) {
	world := situations()["first request"].Make(t)
	decisionsOff(world)
	a := updated(t, world, shown(world, "reject"))
	var application *temporal.ApplicationError
	require.ErrorAs(t, a.err, &application)
	assert.Equal(t, "decisions through Temporal do not count: it asks nobody; use holdfast reject team/"+workflowtest.Backup+
		" --reason TEXT, or kubectl patch of the approval request", application.Message())
}

func TestADecisionIsRefusedByWhatThereIs(t *testing.T) {
	tests := map[string]struct {
		world    func(*testing.T) *fake.World
		change   func(*fake.World)
		decision contract.Decision
		stale    bool
		want     string
	}{
		"nothing is pending":            {world: makeApproved, decision: "approve", want: contract.ErrorNothingToDecide},
		"nothing is pending to reject":  {world: makeApproved, decision: "reject", want: contract.ErrorNothingToDecide},
		"nothing is approved to revoke": {world: situations()["first request"].Make, decision: "revoke", want: contract.ErrorNothingToDecide},
		"it is rejected already": {world: func(t *testing.T) *fake.World {
			world := situations()["first request"].Make(t)
			locationtest.Decide("reject")(world)
			locationtest.Settle(t, world)
			return world
		}, decision: "reject", want: contract.ErrorNothingToDecide},
		"the request has changed": {
			world: situations()["first request"].Make, decision: "approve", want: contract.ErrorLookAgain, stale: true,
		},
		"decisions through Temporal are off": {
			world:  situations()["first request"].Make,
			change: decisionsOff, decision: "approve", want: contract.ErrorDecisionsOff,
		},
		"the location is being deleted": {
			world: situations()["first request"].Make, change: locationtest.RemoveLocation, decision: "approve", want: contract.ErrorNothingToDecide,
		},
		"the location is gone": {
			world: situations()["first request"].Make, decision: "approve", want: contract.ErrorNothingToDecide,
			change: func(w *fake.World) {
				object := w.Location(workflowtest.Backup)
				object.Finalizers = nil
				w.Remove(object)
				if object = w.Location(workflowtest.Backup); object != nil {
					object.Finalizers = nil
					_ = w.Client.Update(w.Context(), object)
				}
			},
		},
		"approval is not required any more": {
			world: situations()["first request"].Make, change: locationtest.SwitchApproval(false), decision: "approve", want: contract.ErrorNothingToDecide,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := test.world(t)
			decision := shown(world, test.decision)
			if test.stale {
				world.Decide(workflowtest.Backup, func(r *locationtest.Request) { r.Labels["seen"] = "by-another" })
			}
			want := world.ApprovalRequest(workflowtest.Backup).Status
			var a *answer
			require.NoError(t, locationtest.ServeApproval(world, func(s *workflowtest.Scenario) {
				s.RegisterDelayedCallback(func() { // the workflow knows nothing of the change yet
					if test.change != nil {
						test.change(world)
					}
					a = update(s, "u", decision)
				}, time.Second)
			}))
			require.True(t, a.accepted, "the validator knows no state")
			require.True(t, a.completed)
			refusedAs(t, a.err, test.want)
			assert.Equal(t, want, world.ApprovalRequest(workflowtest.Backup).Status, "nothing is decided")
		})
	}
}

func makeApproved(t *testing.T) *fake.World { return locationtest.Approved(t) }

// An Update that comes before the workflow has read anything waits until it has.
func TestAnEarlyDecisionWaitsForTheState(t *testing.T) {
	world := situations()["first request"].Make(t)
	decision := shown(world, "approve")
	away := true
	world.FailReads(func(runtime.Object) error {
		if away {
			return fake.ErrAway
		}
		return nil
	})
	var a *answer
	require.NoError(t, locationtest.ServeApproval(world, func(s *workflowtest.Scenario) {
		s.RegisterDelayedCallback(func() { a = update(s, "u", decision) }, 0)
		s.RegisterDelayedCallback(func() {
			assert.True(t, a.accepted)
			assert.False(t, a.completed)
			away = false
		}, 10*time.Second)
	}))
	require.NoError(t, a.err)
	assert.Equal(t, contract.ApprovalApproved, a.outcome.State)
}

// The API server takes the decision, the worker does not hear of it and tries again.
func TestADecisionWhoseAnswerIsLostIsWrittenOnce(t *testing.T) {
	for _, decision := range []contract.Decision{"approve", "reject", "revoke"} {
		t.Run(string(decision), func(t *testing.T) {
			world := situations()["update of the spec"].Make(t)
			lost := 0
			world.Lose(func(verb string, object client.Object) error {
				if _, is := object.(*locationtest.Request); is && verb == "patch" && lost == 0 {
					lost++
					return fake.ErrAway
				}
				return nil
			})
			generation := world.ApprovalRequest(workflowtest.Backup).Generation
			a := updated(t, world, shown(world, decision))
			require.NoError(t, a.err)
			assert.Equal(t, 1, lost)
			assert.Equal(t, decision, a.outcome.Decided.Decision)
			want := generation + 1
			if decision == contract.DecisionRevoke {
				want++ // its reset
			}
			assert.Equal(t, want, world.ApprovalRequest(workflowtest.Backup).Generation, "written once")
		})
	}
}
