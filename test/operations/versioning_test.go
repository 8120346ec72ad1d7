package operations_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/contract"
)

// A worker with a version gets work only when that version is current; workflows that wait move to the next one.
func TestWorkersAreRolledOutByVersion(t *testing.T) {
	s := newScene(t, "versioned", temporalclient.Options{})
	const deployment = "holdfast-worker-test"
	version := func(build string) []string {
		return []string{"TEMPORAL_DEPLOYMENT_NAME=" + deployment, "TEMPORAL_WORKER_BUILD_ID=" + build}
	}
	makeCurrent := func(build string) { s.makeCurrent(deployment, build) }

	v1 := startWorker(t, s.cluster, version("v1")...).ready()
	startWatcher(t, s.cluster).ready()
	nab := s.backUp("first")
	eventually.Succeeds(t, patience, func() error { // the watcher signals
		_, err := s.description(nab)
		return err
	})
	assert.Zero(t, count(s.history(nab), enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED), "no version is current")

	makeCurrent("v1")
	s.complete(s.awaitVelero(nab))
	ranOn(t, s.awaitCompleted(nab), deployment, "v1", enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE)
	ranOn(t, s.synchronize(), deployment, "v1", enumspb.VERSIONING_BEHAVIOR_PINNED)

	moving := s.backUp("moving")
	velero := s.awaitVelero(moving)
	startWorker(t, s.cluster, version("v2")...).ready()
	makeCurrent("v2")
	v1.stop()
	s.complete(velero)
	ranOn(t, s.awaitCompleted(moving), deployment, "v2", enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE)
}

// makeCurrent sets a deployment's current version.
func (s *scene) makeCurrent(deployment, build string) {
	s.t.Helper()
	handle := s.temporal.WorkerDeploymentClient().GetHandle(deployment)
	eventually.Succeeds(s.t, patience, func() error { // Temporal knows a version when its worker has polled
		ctx, cancel := context.WithTimeout(s.t.Context(), callPatience)
		defer cancel()
		_, err := handle.SetCurrentVersion(ctx, temporalclient.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
		return err
	})
}

// synchronize runs a workflow that ends soon, to its end.
func (s *scene) synchronize() *workflowservice.DescribeWorkflowExecutionResponse {
	s.t.Helper()
	kind := contract.KindSynchronization
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	run, err := s.temporal.ExecuteWorkflow(ctx, temporalclient.StartWorkflowOptions{TaskQueue: kind.TaskQueue(s.cluster)},
		kind.Workflow, contract.ScheduledInput{Cluster: s.cluster})
	require.NoError(s.t, err)
	require.NoErrorf(s.t, run.Get(ctx, nil), "%s has not ended within %s", kind.Workflow, patience)
	described, err := s.temporal.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	require.NoError(s.t, err)
	return described
}

func ranOn(
	t *testing.T, described *workflowservice.DescribeWorkflowExecutionResponse, deployment, build string,
	behavior enumspb.VersioningBehavior,
) {
	t.Helper()
	info := described.WorkflowExecutionInfo.VersioningInfo
	assert.Equal(t, behavior, info.GetBehavior())
	assert.Equal(t, deployment, info.GetDeploymentVersion().GetDeploymentName())
	assert.Equal(t, build, info.GetDeploymentVersion().GetBuildId())
}
