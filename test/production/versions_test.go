package production_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// polled are the deployments by task queue, as a version polls them. The drills' worker serves the workflows of all versions, and runs
// none itself.
func (r *rollout) polled() map[string]string {
	all := map[string]string{
		contract.FDBTaskQueue(r.ClusterID()): "holdfast/rolled-fdb", contract.DrillTaskQueue(r.ClusterID()): "",
	}
	for deployment, queue := range r.deployments() {
		all[queue] = deployment
	}
	return all
}

// requireAllVersioned requires that no task queue escapes the versions. Temporal names the queues, of all workers that it knows: a new
// one that is not among polled fails the test. Each poller says which version it serves.
func (r *rollout) requireAllVersioned() {
	r.T.Helper()
	var queues map[string]string
	r.Await(func(ctx context.Context) error { // a process reports its first task queue when it starts, and the others within a minute
		var err error
		if queues, err = r.workers(ctx); err == nil && len(queues) < len(r.polled()) {
			err = fmt.Errorf("Temporal knows workers of %v alone", queues)
		}
		return err
	})
	assert.Equal(r.T, r.polled(), queues)
	for queue, deployment := range queues {
		pollers := map[enumspb.TaskQueueType]int{}
		for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
			for _, poller := range r.pollers(queue, kind) {
				pollers[kind]++
				serves := poller.GetDeploymentOptions()
				assert.Equal(r.T, deployment, serves.GetDeploymentName(), "%s, %s", queue, kind)
				if deployment != "" {
					assert.NotEmpty(r.T, serves.GetBuildId(), "%s, %s", queue, kind)
					assert.Equal(r.T, enumspb.WORKER_VERSIONING_MODE_VERSIONED, serves.GetWorkerVersioningMode(), "%s, %s", queue, kind)
				}
			}
		}
		r.T.Logf("%s is polled for %q by %v", queue, deployment, pollers)
		assert.Positive(r.T, pollers[enumspb.TASK_QUEUE_TYPE_ACTIVITY], queue)
		assert.Equal(r.T, slices.Contains(r.queues(), queue), pollers[enumspb.TASK_QUEUE_TYPE_WORKFLOW] > 0, "workflows of %s", queue)
	}
}

// workers are the deployments of all workers that Temporal knows, by task queue.
func (r *rollout) workers(ctx context.Context) (map[string]string, error) {
	known := map[string]string{}
	request := &workflowservice.ListWorkersRequest{Namespace: temporalclient.DefaultNamespace}
	for {
		page, err := r.temporal.WorkflowService().ListWorkers(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, worker := range page.GetWorkers() {
			known[worker.GetTaskQueue()] = worker.GetDeploymentVersion().GetDeploymentName()
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return known, nil
		}
	}
}

// pollers are those of a task queue.
func (r *rollout) pollers(queue string, kind enumspb.TaskQueueType) []*taskqueuepb.PollerInfo {
	r.T.Helper()
	described, err := r.temporal.DescribeTaskQueue(r.T.Context(), queue, kind)
	require.NoError(r.T, err)
	return described.GetPollers()
}
