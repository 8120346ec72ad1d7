package coordination_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// snapshot is a backup's workflow that takes its first snapshot: it asks for a slot, gets it, and releases it when it is told to.
func snapshot(ctx workflow.Context, cluster string) error {
	granted := false
	if err := workflow.SetQueryHandler(ctx, "granted", func() (bool, error) { return granted, nil }); err != nil {
		return err
	}
	tell := func(action contract.FDBSlotAction) error {
		ctx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: heartbeat})
		return workflow.ExecuteActivity(ctx, contract.SignalFDBThrottle.Name, contract.FDBSlotRequest{
			Cluster: cluster, WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID, Action: action,
		}).Get(ctx, nil)
	}
	if err := tell(contract.FDBSlotAcquire); err != nil {
		return err
	}
	var grant contract.FDBSlotGrant
	workflow.GetSignalChannel(ctx, contract.SignalSlotGranted).Receive(ctx, &grant)
	granted = true
	workflow.GetSignalChannel(ctx, "finish").Receive(ctx, nil)
	return tell(contract.FDBSlotRelease)
}

// looker finds out who does not run.
func looker(ctx workflow.Context, holders contract.Workflows) (contract.Workflows, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: patience})
	var closed contract.Workflows
	err := workflow.ExecuteActivity(ctx, contract.DescribeWorkflows.Name, holders).Get(ctx, &closed)
	return closed, err
}

func (r *rig) state(id string) contract.FDBThrottleState {
	r.t.Helper()
	answer, err := temporalClient.QueryWorkflow(r.t.Context(), id, "", contract.QueryState)
	require.NoError(r.t, err)
	var state contract.FDBThrottleState
	require.NoError(r.t, answer.Get(&state))
	return state
}

// updates counts the updates that the current run of a workflow has accepted.
func (r *rig) updates(id string) int {
	r.t.Helper()
	accepted := 0
	events := temporalClient.GetWorkflowHistory(r.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(r.t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED {
			accepted++
		}
	}
	return accepted
}

func TestTheThrottleServesAllInOrderOverManyRunsAndWorkers(t *testing.T) {
	r := newRig(t)
	house := r.house(call.Options{FDBSnapshotLimit: 1})
	id := contract.FDBThrottleID(r.cluster)
	var backups []client.WorkflowRun
	for i := range 15 {
		backups = append(backups, r.start("snapshot", fmt.Sprintf("%s/fdbb/team/%d", r.cluster, i), r.cluster))
		r.eventually(func() bool { // one after the other
			if _, err := temporalClient.DescribeWorkflowExecution(t.Context(), id, ""); err != nil {
				return false
			}
			state := r.state(id)
			return len(state.Holders)+len(state.Waiting) == i+1
		}, "the throttle has not heard of it")
	}
	holds := func(i int) {
		t.Helper()
		r.eventually(func() bool {
			state := r.state(id)
			return len(state.Holders) == 1 && state.Holders[0].WorkflowID == backups[i].GetID()
		}, fmt.Sprintf("backup %d got no slot", i))
	}
	finish := func(i int) {
		t.Helper()
		require.NoError(t, temporalClient.SignalWorkflow(t.Context(), backups[i].GetID(), "", "finish", nil))
		require.NoError(t, r.result(backups[i], nil))
	}
	for i := range 3 {
		holds(i)
		finish(i)
	}
	require.NoError(t, temporalClient.TerminateWorkflow(t.Context(), backups[4].GetID(), "", "lost while it waits"))
	holds(3)
	finish(3)
	holds(5)

	house.Stop()
	r.house(call.Options{FDBSnapshotLimit: 3})
	require.NoError(t, temporalClient.TerminateWorkflow(t.Context(), backups[14].GetID(), "", "lost while it waits"))
	finish(5)
	r.eventually(func() bool { return len(r.state(id).Holders) == 3 }, "the higher limit has no effect")
	assert.Equal(t, 3, r.state(id).Limit)
	for i := 6; i < 14; i++ {
		r.eventually(func() bool {
			answer, err := temporalClient.QueryWorkflow(t.Context(), backups[i].GetID(), "", "granted")
			require.NoError(t, err)
			var granted bool
			require.NoError(t, answer.Get(&granted))
			return granted
		}, fmt.Sprintf("backup %d got no slot", i))
		finish(i)
	}
	var status enumspb.WorkflowExecutionStatus
	var runs int
	r.eventually(func() bool {
		runs, status = r.runs(id)
		return status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}, "the throttle runs on though nobody needs it")
	assert.Greater(t, runs, 1, "it never continued as new")

	next := r.start("snapshot", r.cluster+"/fdbb/team/next", r.cluster)
	require.NoError(t, temporalClient.SignalWorkflow(t.Context(), next.GetID(), "", "finish", nil))
	require.NoError(t, r.result(next, nil), "the throttle is started again")
}

func TestWhoseWorkflowDoesNotRun(t *testing.T) {
	r := newRig(t)
	names := map[string]string{}
	started := []string{"runs", "terminated", "ended", "restarted"}
	r.house(call.Options{FDBSnapshotLimit: len(started)}) // none waits for another's slot
	for _, name := range started {
		names[name] = r.start("snapshot", r.cluster+"/"+name, r.cluster).GetID()
	}
	require.NoError(t, temporalClient.TerminateWorkflow(t.Context(), names["terminated"], "", ""))
	require.NoError(t, temporalClient.TerminateWorkflow(t.Context(), names["restarted"], "", ""))
	r.start("snapshot", names["restarted"], r.cluster)
	require.NoError(t, temporalClient.SignalWorkflow(t.Context(), names["ended"], "", "finish", nil))
	require.NoError(t, r.result(temporalClient.GetWorkflow(t.Context(), names["ended"], ""), nil))
	var closed contract.Workflows
	run := r.start("looker", r.cluster+"/looker", contract.Workflows{WorkflowIDs: []string{
		names["runs"], names["terminated"], names["ended"], r.cluster + "/never", names["restarted"],
	}})
	require.NoError(t, r.result(run, &closed))
	assert.Equal(t, []string{names["terminated"], names["ended"], r.cluster + "/never"}, closed.WorkflowIDs)
}
