package coordination_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast.dev/holdfast/workflows/contract"
)

// guarding is a Temporal where a guard answers after the given errors.
type guarding struct{ ownerless }

func (g *guarding) UpdateWithStartWorkflow(
	ctx context.Context, options client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	if _, err := g.ownerless.UpdateWithStartWorkflow(ctx, options); err != nil {
		return nil, err
	}
	return granting{}, nil
}

type granting struct{ client.WorkflowUpdateHandle }

func (granting) Get(_ context.Context, into any) error {
	into.(*contract.FDBContainerAnswer).Held = true
	return nil
}

func TestAGuardIsAskedUntilItAnswers(t *testing.T) {
	request := contract.FDBContainerRequest{
		Container: "s3.local:443/fdb/lab", Action: contract.FDBContainerExpire, Of: "b",
		User: contract.FDBContainerUser{WorkflowID: "a", Name: "team/a"},
	}
	away := &guarding{ownerless{errors: []error{
		serviceerror.NewNotFound("workflow execution already completed"),
		temporal.NewNonRetryableApplicationError("", "AcceptedUpdateCompletedWorkflow", nil),
	}}}
	_, err := coordinate(t, away, contract.RequestFDBContainer.Name, request)
	require.NoError(t, err)
	require.Len(t, away.updates, 3)
	for i, update := range away.updates {
		assert.Equal(t, away.updates[0].UpdateID, update.UpdateID, "the same request")
		assert.Equal(t, contract.UpdateFDBContainer, update.UpdateName)
		assert.Equal(t, []any{request}, update.Args)
		assert.Equal(t, "fdb-container/s3.local:443/fdb/lab", away.starts[i].ID)
		assert.Equal(t, contract.SharedTaskQueue, away.starts[i].TaskQueue)
		assert.Equal(t, enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, away.starts[i].WorkflowIDConflictPolicy)
		assert.Equal(t, "Guard of container s3.local:443/fdb/lab", away.starts[i].StaticSummary)
	}
}

func TestWhatAGuardRefusesIsFinal(t *testing.T) {
	refused := temporal.NewNonRetryableApplicationError("user: must have a name", contract.ErrorFDBContainerInvalid, nil)
	away := &guarding{ownerless{errors: []error{refused}}}
	_, err := coordinate(t, away, contract.RequestFDBContainer.Name, contract.FDBContainerRequest{Container: "c"})
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	assert.True(t, application.NonRetryable())
	assert.Len(t, away.updates, 1)
}

func TestALongContainerIsShownInPart(t *testing.T) {
	long := "s3.local:443/fdb/" + strings.Repeat("x", 500)
	away := &guarding{}
	_, err := coordinate(t, away, contract.RequestFDBContainer.Name, contract.FDBContainerRequest{Container: long})
	require.NoError(t, err)
	assert.Equal(t, contract.FDBContainerID(long), away.starts[0].ID)
	name, shown := away.starts[0].TypedSearchAttributes.GetKeyword(contract.AttributeName)
	require.True(t, shown)
	assert.Len(t, name, 255, "what every visibility store accepts")
	assert.LessOrEqual(t, len(away.starts[0].StaticSummary), 400)
}
