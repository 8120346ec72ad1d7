package entity_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// gone is the view of an object that is not there, of whatever kind.
var gone = json.RawMessage(`{}`)

// waits is what an object looks like while its workflow waits, by workflow type.
var waits = map[string]string{
	contract.KindBackup.Workflow: `{"found":true,"phase":"Created","finalizer":true,"specJudged":true,"accepted":true,
		"everCreated":true,"velero":{"exists":true,"name":"b","phase":"InProgress","running":true}}`,
	contract.KindRestore.Workflow: `{"found":true,"phase":"Created","finalizer":true,"specJudged":true,"accepted":true,
		"everCreated":true,"velero":{"exists":true,"name":"r","phase":"InProgress","atWork":true}}`,
	contract.KindLocation.Workflow:   `{"found":true,"beingDeleted":true,"phase":"Deleting","remains":1,"held":"a Secret"}`,
	contract.KindDownload.Workflow:   `{"found":true,"judged":true,"velero":{"exists":true,"name":"d","current":true}}`,
	contract.KindApproval.Workflow:   `{"needed":true}`,
	contract.KindPlan.Workflow:       `{"found":true,"ready":true,"wakeIn":3600000000000}`,
	contract.KindFDBBackup.Workflow:  `{"found":true,"clusterGone":true}`,
	contract.KindFDBRestore.Workflow: `{"found":true,"clusterGone":true}`,
}

// eachServed runs a test for each kind that serves objects.
func eachServed(t *testing.T, test func(t *testing.T, kind kinds.Kind)) {
	for _, kind := range workflows.Kinds() {
		if kind.Read != "" {
			require.Contains(t, waits, kind.Workflow)
			t.Run(kind.Workflow, func(t *testing.T) { test(t, kind) })
		}
	}
}

func TestAnObjectThatIsGoneIsSettledAndOneThatWaitsIsNot(t *testing.T) {
	eachServed(t, func(t *testing.T, kind kinds.Kind) {
		decided, err := kind.Decisions.On(gone)
		require.NoError(t, err)
		assert.True(t, decided.Settled)
		byView := decided.Next != entity.Step{} // else more than the view decides
		if byView {
			assert.Equal(t, entity.Settle, decided.Next)
		}
		decided, err = kind.Decisions.On(json.RawMessage(waits[kind.Workflow]))
		require.NoError(t, err)
		assert.False(t, decided.Settled)
		assert.NotEqual(t, entity.Settle, decided.Next)
		assert.Equal(t, byView, decided.Next != entity.Step{})
	})
}

// scene is an object that changes at any moment, and a run that serves it.
type scene struct {
	*testsuite.TestWorkflowEnvironment
	read          string
	waits         json.RawMessage
	version, seen int
	waiting, over bool   // over: nothing that happens keeps the run waiting any more
	duringReads   []bool // for each read that is to come: something happens after it, before the run knows its result
	reads         int
}

// registerActivities registers those of all kinds: each returns the present state.
func (s *scene) registerActivities() {
	for _, kind := range workflows.Kinds() {
		for _, name := range kind.Activities {
			s.RegisterActivityWithOptions(func(context.Context, any) (any, error) {
				return s.act(name), nil
			}, activity.RegisterOptions{Name: name})
		}
	}
}

func (s *scene) act(name string) json.RawMessage {
	state := gone
	if s.waiting {
		state = s.waits
	}
	if name == s.read {
		s.seen = s.version
		s.reads++
		if s.reads <= len(s.duringReads) && s.duringReads[s.reads-1] {
			s.happens(!s.waiting)
		}
	}
	return state
}

// happens changes the object, as an event tells the run.
func (s *scene) happens(waiting bool) {
	if s.IsWorkflowCompleted() {
		return
	}
	s.version++
	s.waiting = waiting && !s.over
	s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
}

// TestNoEventIsLost: whenever something happens, also while the object is being read, the run has read the object since when it ends
// or goes on as a new one.
func TestNoEventIsLost(t *testing.T) {
	eachServed(t, func(t *testing.T, kind kinds.Kind) {
		t.Parallel()
		property.Check(t, func(t *rapid.T) {
			env := environment.New(&testsuite.WorkflowTestSuite{})
			s := &scene{
				TestWorkflowEnvironment: env, read: kind.Read, waits: json.RawMessage(waits[kind.Workflow]),
				waiting:     rapid.Bool().Draw(t, "waits at first"),
				duringReads: rapid.SliceOfN(rapid.Bool(), 0, 5).Draw(t, "during reads"),
			}
			workflows.Register(env, call.Options{})
			s.registerActivities()
			const most = 20
			for range rapid.IntRange(0, 5).Draw(t, "events") {
				at := rapid.IntRange(0, 2*most).Draw(t, "at, in half seconds")
				waiting := rapid.Bool().Draw(t, "waits then")
				env.RegisterDelayedCallback(func() { s.happens(waiting) }, time.Duration(at)*time.Second/2)
			}
			if rapid.Bool().Draw(t, "the history is long") {
				at := rapid.IntRange(0, 2*most).Draw(t, "at, in half seconds")
				env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, time.Duration(at)*time.Second/2)
			}
			env.RegisterDelayedCallback(func() {
				s.over = true
				s.happens(false)
			}, (most+1)*time.Second)
			env.ExecuteWorkflow(kind.Workflow, contract.ObjectInput{
				Cluster: "west", Ref: contract.ObjectRef{Namespace: "team", Name: "a", UID: "u"},
			})
			var next *workflow.ContinueAsNewError
			err := env.GetWorkflowError()
			if !env.IsWorkflowCompleted() || (err != nil && !errors.As(err, &next)) {
				t.Fatalf("completed: %v, error: %v", env.IsWorkflowCompleted(), err)
			}
			if s.seen != s.version {
				t.Fatalf("the run ended having seen event %d of %d", s.seen, s.version)
			}
		})
	})
}
