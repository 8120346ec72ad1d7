package entity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

type step = contract.Activity[contract.ObjectInput, string]

var (
	read   = step{Name: "read"}
	create = step{Name: "create"}
	write  = step{Name: "write"}
	wait   step
)

// toy is a kind whose view is the names of the activities that have run. An object is settled when its view says so.
func toy(next func(done string) step) entity.Kind[*contract.ObjectInput, contract.ObjectInput, string] {
	return entity.Kind[*contract.ObjectInput, contract.ObjectInput, string]{
		Kind: contract.Kind{Workflow: "Toy"}, Read: read,
		Args:    func(in *contract.ObjectInput) contract.ObjectInput { return *in },
		Settled: func(done string) bool { return strings.HasSuffix(done, "end ") },
		Next:    next,
		Awaited: func(done string) string { return "awaited after " + done },
		Phases:  func(string) (string, string) { return "", "" },
	}
}

// serve runs the toy's workflow, and returns what was done and how the run ended. An activity named in last ends the object.
func serve(t *testing.T, kind entity.Kind[*contract.ObjectInput, contract.ObjectInput, string], last int, long bool) (
	env *testsuite.TestWorkflowEnvironment, done *string, run func() (took time.Duration, err error),
) {
	t.Helper()
	env, done = environment.New(&testsuite.WorkflowTestSuite{}), new(string)
	env.SetContinueAsNewSuggested(long)
	taken := 0
	for _, of := range []step{read, create, write} {
		env.RegisterActivityWithOptions(func(_ context.Context, in contract.ObjectInput) (string, error) {
			assert.Equal(t, "west", in.Cluster)
			*done += of.Name + " "
			if taken++; taken == last {
				return *done + "end ", nil
			}
			return *done, nil
		}, activity.RegisterOptions{Name: of.Name})
	}
	env.RegisterWorkflowWithOptions(kind.Run(call.Options{}), workflow.RegisterOptions{Name: kind.Workflow})
	return env, done, func() (time.Duration, error) {
		began := env.Now()
		env.ExecuteWorkflow(kind.Workflow, contract.ObjectInput{Cluster: "west"})
		require.True(t, env.IsWorkflowCompleted())
		return env.Now().Sub(began), env.GetWorkflowError()
	}
}

func TestAPassEndsWhenNoStepIsDue(t *testing.T) {
	kind := toy(func(done string) step {
		if done == "read " {
			return create
		}
		return wait
	})
	env, done, run := serve(t, kind, 3, false)
	env.RegisterDelayedCallback(func() {
		assert.Equal(t, "read create ", *done)
		answer, err := env.QueryWorkflow(contract.QueryState)
		require.NoError(t, err)
		var state contract.State[string]
		require.NoError(t, answer.Get(&state))
		assert.Equal(t, contract.State[string]{View: "read create "}, state)
		env.SignalWorkflow(contract.SignalChanged, contract.Changed{})
	}, time.Minute)
	took, err := run()
	require.NoError(t, err)
	assert.Equal(t, "read create read ", *done, "only a settled object ends a run")
	assert.InDelta(t, time.Minute, took, float64(time.Second))
}

func TestAnObjectIsReadAgainWithoutASignal(t *testing.T) {
	kind := toy(func(string) step { return wait })
	kind.Reread = time.Hour
	_, done, run := serve(t, kind, 3, false)
	took, err := run()
	require.NoError(t, err)
	assert.Equal(t, "read read read ", *done)
	assert.InDelta(t, 2*time.Hour, took, float64(time.Second))
}

func TestStepsThatComeToNothingPause(t *testing.T) {
	kind := toy(func(string) step { return write })
	_, done, run := serve(t, kind, 8, false)
	took, err := run()
	require.NoError(t, err)
	assert.Equal(t, "read"+strings.Repeat(" write", 7), strings.TrimSpace(*done))
	assert.InDelta(t, entity.Pause, took, float64(entity.Pause)/2, "one pause after four activities")

	_, done, run = serve(t, kind, 0, true)
	_, err = run()
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	assert.Equal(t, "read write write write ", *done, "a long history ends the run")
}

// TestAKindThatCannotBeginFails: a handler that cannot be set is a fault of the code.
func TestAKindThatCannotBeginFails(t *testing.T) {
	kind := toy(func(string) step { return wait })
	kind.Begin = func(workflow.Context, *entity.Run[*contract.ObjectInput, contract.ObjectInput, string]) error {
		return errors.New("no")
	}
	_, done, run := serve(t, kind, 1, false)
	_, err := run()
	require.ErrorContains(t, err, "no")
	assert.Empty(t, *done)
}
