package production_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tenants"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/contract"
)

// rollout is a stack without Velero, whose part the test plays, with workers of several versions. The test rolls them out with the
// requests of Temporal's worker controller, in its order: internal/temporal and internal/controller/execplan.go, release 1.11.
type rollout struct {
	*rig
	temporal  temporalclient.Client
	processes map[string][]*env.Process
	// opened does at the end what brings what was opened to its end.
	opened []func()
}

// deployments are those of Temporal, and the task queue of workflows that each has.
func (r *rollout) deployments() map[string]string {
	return map[string]string{
		"holdfast/rolled": contract.TaskQueue(r.ClusterID()), "holdfast/rolled-fdb": contract.FDBWorkflowTaskQueue(r.ClusterID()),
		contract.SharedTaskQueue: contract.SharedTaskQueue,
	}
}

func (r *rollout) queues() []string { return slices.Sorted(maps.Values(r.deployments())) }

func newRollout(t *testing.T) *rollout {
	t.Helper()
	needsPostgres(t)
	binaries, err := tools.BuildHoldfast(t.Context(), os.Stdout)
	require.NoError(t, err)
	stack, err := env.Start(t.Context(), env.Options{
		Progress: os.Stdout, Bin: binaries, TemporalServer: true, FoundationDB: true, Drills: true, Without: []string{env.S3, env.Velero},
	})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	_, err = stack.Other(t.Context(), env.DrillWorker, env.DrillWorker, binaries[tools.HoldfastWorker], nil) // it has no version
	require.NoError(t, err)
	r := &rollout{rig: newRig(t, stack, "rolled"), processes: map[string][]*env.Process{}}
	options, err := stack.TemporalOptions()
	require.NoError(t, err)
	options.Logger = env.QuietLogger()
	r.temporal, err = temporalclient.Dial(options)
	require.NoError(t, err)
	t.Cleanup(r.temporal.Close)
	location := &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "default"},
		Spec: velerov1.BackupStorageLocationSpec{
			Provider: "aws", Default: true,
			StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "none"}},
		},
	}
	require.NoError(t, r.Admin.Create(t.Context(), location))
	location.Status.Phase = velerov1.BackupStorageLocationPhaseAvailable
	require.NoError(t, r.Admin.Update(t.Context(), location))
	return r
}

// version is a build, in each deployment.
type version struct {
	build string
}

// gateID is the controller's: GetTestWorkflowID.
func (v version) gateID(queue string) string { return "test-" + queue + ":" + v.build + "-" + queue }

// start starts the workers of a version, and waits until Temporal knows it on all its task queues.
func (r *rollout) start(build, binary string) version {
	r.T.Helper()
	of := func(name string) []string {
		return []string{"TEMPORAL_DEPLOYMENT_NAME=" + name, "TEMPORAL_WORKER_BUILD_ID=" + build}
	}
	velero, err := r.Other(r.T.Context(), env.Worker, "worker-"+build, binary, of("holdfast/rolled"), env.ApproveAlways)
	require.NoError(r.T, err)
	fdb, err := r.Other(r.T.Context(), env.FDBWorker, "fdb-"+build, binary, of("holdfast/rolled-fdb"), "--fdb-bin-dir="+r.T.TempDir())
	require.NoError(r.T, err)
	r.processes[build] = []*env.Process{velero, fdb}
	v := version{build}
	for deployment, queue := range r.deployments() {
		r.Await(func(ctx context.Context) error {
			described, err := r.temporal.WorkerDeploymentClient().GetHandle(deployment).DescribeVersion(ctx,
				temporalclient.WorkerDeploymentDescribeVersionOptions{BuildID: build})
			if err == nil && !slices.ContainsFunc(described.Info.TaskQueuesInfos, serves(queue)) {
				err = fmt.Errorf("version %s of %s does not serve %s", build, deployment, queue)
			}
			return err
		})
	}
	return v
}

func serves(queue string) func(temporalclient.WorkerDeploymentTaskQueueInfo) bool {
	return func(q temporalclient.WorkerDeploymentTaskQueueInfo) bool {
		return q.Name == queue && q.Type == temporalclient.TaskQueueTypeWorkflow
	}
}

func (r *rollout) stop(v version) {
	r.T.Helper()
	for _, process := range r.processes[v.build] {
		require.NoError(r.T, process.Stop())
	}
}

// gates starts a gate on each task queue, pinned to the version, and returns how each has ended.
func (r *rollout) gates(v version) map[string]error {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), tenants.Patience)
	defer cancel()
	runs := map[string]temporalclient.WorkflowRun{}
	for deployment, queue := range r.deployments() {
		run, err := r.temporal.ExecuteWorkflow(ctx, temporalclient.StartWorkflowOptions{
			ID: v.gateID(queue), TaskQueue: queue, WorkflowExecutionTimeout: time.Hour,
			WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
			VersioningOverride: &temporalclient.PinnedVersioningOverride{
				Version: worker.WorkerDeploymentVersion{DeploymentName: deployment, BuildID: v.build},
			},
		}, contract.KindGate.Workflow)
		require.NoError(r.T, err)
		runs[queue] = run
	}
	ended := map[string]error{}
	for queue, run := range runs {
		ended[queue] = run.Get(ctx, nil)
	}
	return ended
}

// ramp gives a version a part of the workflows.
func (r *rollout) ramp(v version, percent float32) {
	r.T.Helper()
	for deployment := range r.deployments() {
		handle := r.temporal.WorkerDeploymentClient().GetHandle(deployment)
		r.Await(func(ctx context.Context) error {
			_, err := handle.SetRampingVersion(ctx, temporalclient.WorkerDeploymentSetRampingVersionOptions{
				BuildID: v.build, Percentage: percent,
			})
			return err
		})
	}
}

// current gives a version all workflows.
func (r *rollout) current(v version) {
	r.T.Helper()
	for deployment := range r.deployments() {
		handle := r.temporal.WorkerDeploymentClient().GetHandle(deployment)
		r.Await(func(ctx context.Context) error {
			_, err := handle.SetCurrentVersion(ctx, temporalclient.WorkerDeploymentSetCurrentVersionOptions{BuildID: v.build})
			return err
		})
	}
}

// list lists workflows that match a query; all if it is empty.
func (r *rollout) list(query string) (runs []*workflowpb.WorkflowExecutionInfo) {
	r.T.Helper()
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: temporalclient.DefaultNamespace, Query: query}
	for {
		page, err := r.temporal.ListWorkflow(r.T.Context(), request)
		require.NoError(r.T, err)
		runs = append(runs, page.Executions...)
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			return runs
		}
	}
}

func (r *rollout) openTypes() map[string]int {
	r.T.Helper()
	counts := map[string]int{}
	for _, run := range r.list("ExecutionStatus = 'Running'") {
		counts[run.Type.Name]++
	}
	return counts
}

func (r *rollout) events(id, run string) (events []*historypb.HistoryEvent) {
	r.T.Helper()
	history := r.temporal.GetWorkflowHistory(r.T.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(r.T, err)
		events = append(events, event)
	}
	return events
}

// servedLast is the build that has completed the last workflow task of a workflow.
func (r *rollout) servedLast(id string) (build string) {
	r.T.Helper()
	for _, event := range r.events(id, "") {
		if completed := event.GetWorkflowTaskCompletedEventAttributes(); completed != nil {
			build = completed.GetDeploymentVersion().GetBuildId()
		}
	}
	return build
}
