package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

func newEnv(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := environment.New(suite)
	env.SetTestTimeout(30 * time.Second)
	workflows.Register(env, call.Options{})
	return env
}

// execute runs a gate over an activity that a test writes; with the input, if there is one.
func execute(
	t *testing.T, env *testsuite.TestWorkflowEnvironment, replay func(contract.GateRequest) (contract.GateResult, error), input ...any,
) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env.RegisterActivityWithOptions(func(_ context.Context, in contract.GateRequest) (contract.GateResult, error) {
		return replay(in)
	}, activity.RegisterOptions{Name: contract.ReplayOpenWorkflows.Name})
	env.ExecuteWorkflow(contract.KindGate.Workflow, input...)
	require.True(t, env.IsWorkflowCompleted())
	return env
}

// Temporal's worker controller gives no input.
func TestAGateReplaysTheTaskQueueThatItIsStartedOn(t *testing.T) {
	want := contract.GateResult{Types: []contract.GateType{{Workflow: "NonAdminBackup", Open: 7, Replayed: 3}}}
	for name, input := range map[string][]any{"without an input": nil, "with an input": {contract.GateInput{Each: 3}}} {
		t.Run(name, func(t *testing.T) {
			var got []contract.GateRequest
			env := execute(t, newEnv(t), func(in contract.GateRequest) (contract.GateResult, error) {
				got = append(got, in)
				return want, nil
			}, input...)
			require.NoError(t, env.GetWorkflowError())
			var result contract.GateResult
			require.NoError(t, env.GetWorkflowResult(&result))
			assert.Equal(t, want, result)
			require.Len(t, got, 1)
			assert.Equal(t, "default-test-taskqueue", got[0].TaskQueue)
			assert.Equal(t, 3*len(input), got[0].Each)
		})
	}
}

func TestWhatDoesNotReplayFailsTheGateAtOnce(t *testing.T) {
	calls := 0
	env := execute(t, newEnv(t), func(contract.GateRequest) (contract.GateResult, error) {
		calls++
		return contract.GateResult{}, temporal.NewNonRetryableApplicationError("west/nab/a does not replay", contract.ErrorDoesNotReplay, nil)
	})
	require.ErrorContains(t, env.GetWorkflowError(), "west/nab/a does not replay")
	assert.Equal(t, 1, calls)
}

// A gate that cannot read Temporal passes nobody, and holds nobody for it at once.
func TestAGateOutlastsAnOutage(t *testing.T) {
	calls := 0
	env := execute(t, newEnv(t), func(contract.GateRequest) (contract.GateResult, error) {
		if calls++; calls < 6 {
			return contract.GateResult{}, errors.New("connection refused")
		}
		return contract.GateResult{}, nil
	})
	require.NoError(t, env.GetWorkflowError())
}
