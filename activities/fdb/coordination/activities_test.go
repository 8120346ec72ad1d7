package coordination_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/activities/fdb/coordination"
	"holdfast.dev/holdfast/workflows/contract"
)

// ownerless is a Temporal whose answers to updates are given. Other methods are not called.
type ownerless struct {
	client.Client
	errors  []error // one after the other, then there is an answer
	starts  []client.StartWorkflowOptions
	updates []client.UpdateWorkflowOptions
	signals []any
}

func (o *ownerless) NewWithStartWorkflowOperation(
	options client.StartWorkflowOptions, _ any, _ ...any,
) client.WithStartWorkflowOperation {
	o.starts = append(o.starts, options)
	return nil
}

func (o *ownerless) UpdateWithStartWorkflow(
	_ context.Context, options client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	o.updates = append(o.updates, options.UpdateOptions)
	if len(o.errors) == 0 {
		return answering{}, nil
	}
	err := o.errors[0]
	o.errors = o.errors[1:]
	return nil, err
}

func (o *ownerless) SignalWithStartWorkflow(
	_ context.Context, id, name string, signal any, options client.StartWorkflowOptions, workflow any, args ...any,
) (client.WorkflowRun, error) {
	o.starts = append(o.starts, options)
	o.signals = append(o.signals, id, name, signal, workflow, args[0])
	return nil, nil
}

type answering struct{ client.WorkflowUpdateHandle }

func (answering) Get(_ context.Context, into any) error {
	into.(*contract.FDBCommandAnswer).Later = true
	return nil
}

func coordinate(t *testing.T, temporalClient client.Client, name string, in any) (contract.FDBCommandAnswer, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	(&coordination.Activities{Temporal: temporalClient}).Register(env)
	var answer contract.FDBCommandAnswer
	value, err := env.ExecuteActivity(name, in)
	if err == nil && value.HasValue() {
		require.NoError(t, value.Get(&answer))
	}
	return answer, err
}

func TestAnOwnerIsAskedUntilItAnswers(t *testing.T) {
	refused := temporal.NewNonRetryableApplicationError("member: must have a name", contract.ErrorFDBRequestInvalid, nil)
	tests := map[string]struct {
		err       error
		again     bool
		permanent bool
	}{
		"it is ending":                  {err: serviceerror.NewNotFound("workflow execution already completed"), again: true},
		"it has enough to do":           {err: &serviceerror.ResourceExhausted{}, again: true},
		"it was going over":             {err: serviceerror.NewAborted("workflow update was aborted"), again: true},
		"it has ended with the request": {err: temporal.NewNonRetryableApplicationError("", "AcceptedUpdateCompletedWorkflow", nil), again: true},
		"it takes long":                 {err: client.NewWorkflowUpdateServiceTimeoutOrCanceledError(errors.New("deadline")), again: true},
		"it refuses":                    {err: refused, permanent: true},
		"Temporal lets nobody in":       {err: serviceerror.NewPermissionDenied("no", "")},
		"there is no such namespace":    {err: serviceerror.NewNamespaceNotFound("x")},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			away := &ownerless{errors: []error{test.err}}
			answer, err := coordinate(t, away, contract.RequestFDBCommand.Name, contract.FDBCommandRequest{Cluster: "lab:1"})
			if test.again {
				require.NoError(t, err)
				assert.True(t, answer.Later)
				require.Len(t, away.updates, 2)
				assert.Equal(t, away.updates[0].UpdateID, away.updates[1].UpdateID, "the same request")
				return
			}
			require.Len(t, away.updates, 1)
			var application *temporal.ApplicationError
			require.ErrorAs(t, err, &application)
			assert.Equal(t, test.permanent, application.NonRetryable(), "what people can repair is retried, and seen")
		})
	}
}

func TestHowCoordinatorsAreStarted(t *testing.T) {
	there := &ownerless{}
	_, err := coordinate(t, there, contract.RequestFDBCommand.Name, contract.FDBCommandRequest{Cluster: "lab:1"})
	require.NoError(t, err)
	_, err = coordinate(t, there, contract.SignalFDBThrottle.Name, contract.FDBSlotRequest{Cluster: "west", WorkflowID: "a", Action: "acquire"})
	require.NoError(t, err)
	require.Len(t, there.starts, 2)
	owner, throttle := there.starts[0], there.starts[1]
	assert.Equal(t, "fdb/lab:1", owner.ID)
	assert.Equal(t, contract.SharedTaskQueue, owner.TaskQueue)
	assert.Equal(t, enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, owner.WorkflowIDConflictPolicy)
	assert.Equal(t, "holdfast-fdb-west.workflows", throttle.TaskQueue)
	for _, options := range there.starts {
		assert.Equal(t, "5s", options.WorkflowTaskTimeout.String(), "what the kill of a worker costs")
		assert.NotEmpty(t, options.StaticSummary)
		for key := range options.TypedSearchAttributes.GetUntypedValues() {
			assert.Contains(t, contract.SearchAttributeNames(), key.GetName())
		}
	}
	assert.Equal(t, []any{
		"west/fdb-snapshot-throttle", contract.SignalSlot,
		contract.FDBSlotRequest{Cluster: "west", WorkflowID: "a", Action: "acquire"},
		contract.KindFDBThrottle.Workflow,
		contract.FDBThrottleInput{Cluster: "west"},
	}, there.signals)
}
