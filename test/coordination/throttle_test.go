package coordination_test

import (
	"context"
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

// awaitState waits until the throttle's state is as wished.
func (r *rig) awaitState(id, want string, ok func(contract.FDBThrottleState) bool) {
	r.t.Helper()
	r.succeeds(func(ctx context.Context) error {
		answer, err := temporalClient.QueryWorkflow(ctx, id, "", contract.QueryState)
		if err != nil {
			return fmt.Errorf("%s: %w", want, err)
		}
		var state contract.FDBThrottleState
		if err := answer.Get(&state); err != nil {
			return err
		}
		if !ok(state) {
			return fmt.Errorf("want: %s; the throttle has %+v", want, state)
		}
		return nil
	})
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
		// One after the other.
		r.awaitState(id, fmt.Sprintf("it has heard of backup %d", i), func(state contract.FDBThrottleState) bool {
			return len(state.Holders)+len(state.Waiting) == i+1
		})
	}
	holds := func(i int) {
		t.Helper()
		r.awaitState(id, fmt.Sprintf("backup %d has the slot", i), func(state contract.FDBThrottleState) bool {
			return len(state.Holders) == 1 && state.Holders[0].WorkflowID == backups[i].GetID()
		})
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
	r.awaitState(id, "the higher limit", func(state contract.FDBThrottleState) bool {
		return len(state.Holders) == 3 && state.Limit == 3
	})
	for i := 6; i < 14; i++ {
		r.succeeds(func(ctx context.Context) error {
			answer, err := temporalClient.QueryWorkflow(ctx, backups[i].GetID(), "", "granted")
			if err != nil {
				return err
			}
			var granted bool
			if err := answer.Get(&granted); err != nil || granted {
				return err
			}
			return fmt.Errorf("backup %d got no slot", i)
		})
		finish(i)
	}
	var runs int
	r.succeeds(func(ctx context.Context) error {
		found, status, err := r.runs(ctx, id)
		if err == nil && status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			err = fmt.Errorf("the throttle is %s though nobody needs it", status)
		}
		runs = found
		return err
	})
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
