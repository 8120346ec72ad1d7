package operations_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// The coordinators that Kubernetes clusters have in common have one deployment in common: whichever cluster gets its new workers
// first, they serve no coordinator before the new version is current, and all of them then.
func TestTheSharedQueueIsRolledOutByVersion(t *testing.T) {
	s := newScene(t, "shared-west", temporalclient.Options{})
	fdbWorker := func(cluster, build string) *process {
		return startFDBWorker(t, cluster, "TEMPORAL_DEPLOYMENT_NAME="+cluster+"-fdb", "TEMPORAL_WORKER_BUILD_ID="+build).ready()
	}
	const deployment = contract.SharedTaskQueue
	guard := "127.0.0.1:9/bucket/" + s.namespace

	fdbWorker("shared-west", "v1")
	s.makeCurrent(deployment, "v1")
	ranOn(t, s.use(guard, "first"), deployment, "v1", enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE)

	fdbWorker("shared-east", "v2")
	ranOn(t, s.use(guard, "second"), deployment, "v1", enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE)
	s.makeCurrent(deployment, "v2")
	ranOn(t, s.use(guard, "third"), deployment, "v2", enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE)
	s.makeCurrent(deployment, "v1")
	ranOn(t, s.use(guard, "fourth"), deployment, "v1", enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE)

	events := s.events(contract.FDBContainerID(guard))
	assert.Zero(t, count(events, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED))
	var state contract.FDBContainerState
	answer, err := s.temporal.QueryWorkflow(t.Context(), contract.FDBContainerID(guard), "", contract.QueryState)
	require.NoError(t, err)
	require.NoError(t, answer.Get(&state))
	assert.Len(t, state.Users, 4)
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), contract.FDBContainerID(guard), "", "the test is over"))
}

// use tells the guard of a container, which is started if need be, that somebody uses it.
func (s *scene) use(container, user string) *workflowservice.DescribeWorkflowExecutionResponse {
	s.t.Helper()
	id := contract.FDBContainerID(container)
	start := s.temporal.NewWithStartWorkflowOperation(temporalclient.StartWorkflowOptions{
		ID: id, TaskQueue: contract.SharedTaskQueue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, contract.KindFDBContainer.Workflow, contract.FDBContainerInput{Container: container})
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	update, err := s.temporal.UpdateWithStartWorkflow(ctx, temporalclient.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: temporalclient.UpdateWorkflowOptions{
			UpdateName: contract.UpdateFDBContainer, WaitForStage: temporalclient.WorkflowUpdateStageCompleted,
			Args: []any{contract.FDBContainerRequest{
				Container: container, Action: contract.FDBContainerUse,
				User: contract.FDBContainerUser{WorkflowID: user, Name: fmt.Sprintf("%s/%s", s.namespace, user), Cluster: s.cluster, Namespace: s.namespace},
			}},
		},
	})
	require.NoError(s.t, err)
	require.NoError(s.t, update.Get(ctx, nil))
	described, err := s.temporal.DescribeWorkflowExecution(ctx, id, "")
	require.NoError(s.t, err)
	return described
}
