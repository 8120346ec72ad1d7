package entity_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// eachServed runs a test for each kind that serves objects.
func eachServed(t *testing.T, test func(t *testing.T, kind kinds.Kind)) {
	for _, kind := range workflows.Kinds() {
		if kind.Served != nil {
			t.Run(kind.Workflow, func(t *testing.T) { test(t, kind) })
		}
	}
}

func TestAnObjectThatIsGoneIsSettledAndOneThatWaitsIsNot(t *testing.T) {
	eachServed(t, func(t *testing.T, kind kinds.Kind) {
		assert.True(t, kind.Served.Settled(kind.Served.Gone))
		assert.False(t, kind.Served.Settled(kind.Served.Waits))
	})
}

// scene is an object that changes at any moment, and a run that serves it.
type scene struct {
	*testsuite.TestWorkflowEnvironment
	*kinds.Served
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

func (s *scene) act(name string) any {
	state := s.Gone
	if s.waiting {
		state = s.Waits
	}
	if name == s.Read {
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

// TestNoEventIsLost: whenever something happens, also while the object is being read, the run has read the object since when it
// ends or goes on as a new one.
func TestNoEventIsLost(t *testing.T) {
	eachServed(t, func(t *testing.T, kind kinds.Kind) {
		t.Parallel()
		property.Check(t, func(t *rapid.T) {
			env := environment.New(&testsuite.WorkflowTestSuite{})
			s := &scene{
				TestWorkflowEnvironment: env, Served: kind.Served,
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
