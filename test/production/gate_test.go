package production_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// neverOpen are the types of which this test has no open workflow, and why.
var neverOpen = map[string]string{
	contract.KindGate.Workflow:           "it is what is tested",
	contract.KindPlanStart.Workflow:      "pinned, and one signal long",
	contract.KindFDBExpiry.Workflow:      "pinned, and open only while a pod runs",
	contract.KindFDBExpiryQueue.Workflow: "ends at once without a backup to expire",
	contract.KindFDBThrottle.Workflow:    "ends at once without a backup in its first snapshot",
	contract.KindFDBDrill.Workflow:       "ends at once without a FoundationDB backup that can be restored",
}

// Many workflows are open, of all types but those that need a FoundationDB. A new build that does not replay them is held by its gate,
// and the old one goes on. One that does replay them passes, gets a part of them and then all, and everything comes to its end: nothing
// is lost, nothing made twice, and no workflow task fails. No task queue of workflows is without a version.
func TestANewVersionGoesThroughItsGate(t *testing.T) {
	r := newRollout(t)
	old := r.start("old", r.Binary(tools.HoldfastWorker))
	bad := r.start("bad", anotherBuild(t, "workflows/backup/backup.go", "func begin(_ workflow.Context, r *run) error {\n",
		"func begin(ctx workflow.Context, r *run) error {\n	if err := workflow.Sleep(ctx, 1); err != nil {\n		return err\n	}\n"))
	// Another build that replays: CONTRIBUTING has it that retry policies may change.
	good := r.start("new", anotherBuild(t, "workflows/call/call.go", "RetryCap      = 5 * time.Second", "RetryCap      = 4 * time.Second"))
	r.current(old)
	r.open(openWorkflows())

	r.requireHeld(bad)
	r.BackUp("while-held", "")
	r.complete("while-held")
	assert.Equal(t, "old", r.servedLast(r.backupID("while-held")))
	r.stop(bad)

	r.openPaused()
	r.requireAllTypes()
	r.requirePassed(good)
	r.requireAllVersioned()
	r.ramp(good, 5)
	r.ramp(good, 50)
	r.requireShared(old, good)
	r.current(good)
	r.end()
	r.stop(old)
	r.requireServed(good)
}

// requireHeld requires that the gate of a build whose workflow of backups does not replay fails, and names one.
func (r *rollout) requireHeld(v version) {
	r.T.Helper()
	held := r.gates(v)
	require.Error(r.T, held[contract.TaskQueue(r.ClusterID())])
	problem := held[contract.TaskQueue(r.ClusterID())].Error()
	r.T.Log(problem)
	assert.Contains(r.T, problem, contract.ErrorDoesNotReplay)
	assert.Regexp(r.T, "NonAdminBackup "+r.ClusterID()+"/nab/"+r.Name+"/backup-[0-9]+/", problem)
	assert.Contains(r.T, problem, "TMPRL1100")
	require.NoError(r.T, held[contract.FDBWorkflowTaskQueue(r.ClusterID())], "what it has not changed replays")
	require.NoError(r.T, held[contract.SharedTaskQueue])
}

// openWorkflows is how many objects are made.
func openWorkflows() int {
	if sample.Whole() {
		return 1000
	}
	return 60
}

// anotherBuild builds a worker with another text in a file.
func anotherBuild(t *testing.T, file, before, after string) string {
	t.Helper()
	root, err := tools.Root()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), before), file)
	worker, err := tools.BuildWorkerWith(t.Context(), t.TempDir(), file, strings.Replace(string(source), before, after, 1))
	require.NoError(t, err)
	return worker
}

// requireAllTypes requires an open workflow of each type.
func (r *rollout) requireAllTypes() {
	r.T.Helper()
	counts := r.openTypes()
	r.T.Logf("open workflows: %v", counts)
	for _, kind := range workflows.Kinds() {
		if neverOpen[kind.Workflow] == "" {
			assert.Positive(r.T, counts[kind.Workflow], kind.Workflow)
		}
	}
}

// requirePassed requires that all gates pass, and that they have replayed something of each type that is not pinned.
func (r *rollout) requirePassed(v version) {
	r.T.Helper()
	for queue, err := range r.gates(v) {
		require.NoError(r.T, err, queue)
	}
	replayed := map[string]int{}
	for _, queue := range r.queues() {
		var result contract.GateResult
		require.NoError(r.T, r.temporal.GetWorkflow(r.T.Context(), v.gateID(queue), "").Get(r.T.Context(), &result))
		r.T.Logf("gate of %s: %+v", queue, result)
		for _, each := range result.Types {
			replayed[each.Workflow] += each.Replayed
		}
	}
	for _, kind := range workflows.Kinds() {
		if neverOpen[kind.Workflow] == "" && !kind.Pinned {
			assert.Positive(r.T, replayed[kind.Workflow], kind.Workflow)
		}
	}
}

// requireShared requires that workflows that begin now begin on both versions: gates say on which, and change nothing.
func (r *rollout) requireShared(versions ...version) {
	r.T.Helper()
	begun := map[string]int{}
	for i := range 16 { // by the halves of a ramp, none in 32,768 times has one version alone
		run, err := r.temporal.ExecuteWorkflow(r.T.Context(), temporalclient.StartWorkflowOptions{
			ID: numbered("ramped", i), TaskQueue: contract.TaskQueue(r.ClusterID()),
		}, contract.KindGate.Workflow, contract.GateInput{Each: 1})
		require.NoError(r.T, err)
		var result contract.GateResult
		require.NoError(r.T, run.Get(r.T.Context(), &result))
		begun[result.Build]++
	}
	r.T.Logf("while the new version has half: %v", begun)
	for _, v := range versions {
		assert.Positive(r.T, begun[v.build], v.build)
	}
}

// requireServed requires that no workflow task has failed, and that what was open has moved to a version.
func (r *rollout) requireServed(v version) {
	r.T.Helper()
	moved := 0
	for _, run := range r.list("") {
		if run.Type.Name == contract.KindGate.Workflow {
			continue
		}
		events, last := r.events(run.Execution.WorkflowId, run.Execution.RunId), ""
		for _, event := range events {
			if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil {
				assert.Equal(r.T, enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, failed.Cause, "%s: %s",
					run.Execution.WorkflowId, failed.GetFailure().GetMessage())
			}
			if completed := event.GetWorkflowTaskCompletedEventAttributes(); completed != nil {
				last = completed.GetDeploymentVersion().GetBuildId()
				assert.NotEqual(r.T, "bad", last, run.Execution.WorkflowId)
			}
		}
		if last == v.build && slices.ContainsFunc(events, servedBy("old")) {
			moved++
		}
	}
	r.T.Logf("%d runs were begun by the old version and continued by the new one", moved)
	assert.GreaterOrEqual(r.T, moved, openWorkflows()/2)
}

func servedBy(build string) func(*historypb.HistoryEvent) bool {
	return func(event *historypb.HistoryEvent) bool {
		return event.GetWorkflowTaskCompletedEventAttributes().GetDeploymentVersion().GetBuildId() == build
	}
}
