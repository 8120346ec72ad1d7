package outage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/histories"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// A worker is replaced by one of another release while workflows are open, and both serve them side by side for a while: no workflow
// task fails, and the same comes of it as without. Every workflow type of Velero's half is begun by one release and gone on with by
// the other.
func TestRolledOut(t *testing.T) {
	if !outage.RolloutsAreDue() {
		sample.InLong(t, "TestKilledAnywhere") // there a worker is replaced by one of the same build
	}
	r := theRig(t)
	rollouts := outage.NewRollouts(t, allTypes())
	for _, s := range scenarios {
		if !ordinary(s) || s.newer || (s.inLong && !sample.Whole()) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rollouts.Run(t, s.rolledOut, undisturbed(t, r, s).moments, r.binaries, sample.Whole() || s.name == "create",
				func(t *testing.T, rollout outage.Rollout, from map[string]string) {
					rollOut(t, r, s, rollout, from, rollouts)
				})
		})
	}
	t.Run("periodic work", func(t *testing.T) {
		t.Parallel()
		rollouts.RunAt(t, outage.Rollout{}, r.binaries, sample.Whole(), func(t *testing.T, rollout outage.Rollout, from map[string]string) {
			rollOutPeriodicWork(t, r, rollout, from, rollouts)
		})
	})
}

// allTypes returns all workflow types of Velero's half.
func allTypes() (types []string) {
	for _, kind := range workflows.Kinds() {
		if kind.Queue == contract.QueueVelero && !histories.Newer[kind.Workflow] {
			types = append(types, kind.Workflow)
		}
	}
	return types
}

func rollOut(
	t *testing.T, r *rig, s scenario, rollout outage.Rollout, from map[string]string, rollouts *outage.Rollouts,
) {
	t.Helper()
	setPolicy(t, r, "{}")
	older := *r
	older.binaries = from
	withCase(t, &older, func(c *testCase) {
		began := time.Now()
		got := c.runWith(s, func() (ends int) { return rollout.Plan(c.Subjects) })
		say(t, "rolled out %s", rollout)
		c.requireSame(baselines[s.name].left.ofAnyBuild(), got.ofAnyBuild())
		rollouts.RequireServed(t, r.temporal, c.workflows(), began)
	})
}

// workflows is the query of the case's.
func (c *testCase) workflows() string {
	return fmt.Sprintf("%s = '%s'", contract.AttributeCluster.GetName(), c.namespace)
}

// What Schedules start is no scenario (leftOut). A run of each kind stands at the activity that they have in common when the other
// worker comes, and theirs is ended.
func rollOutPeriodicWork(
	t *testing.T, r *rig, rollout outage.Rollout, from map[string]string, rollouts *outage.Rollouts,
) {
	t.Helper()
	setPolicy(t, r, "{}")
	older := *r
	older.binaries = from
	c := newCase(t, &older, nil)
	began, goOn := time.Now(), make(chan struct{})
	stand := func() error {
		select {
		case <-goOn:
			return nil
		case <-time.After(patience):
			return errors.New("the worker was not replaced")
		}
	}
	for i := range 10 { // the Schedules start runs, too
		synchronizing := failpoint.Point{Step: contract.SynchronizeBackups.Name, Form: failpoint.Regular}
		c.Driver.At(outage.Moment{Point: synchronizing, Occurrence: i + 1}, stand)
	}
	c.Driver.Arm()
	runs := []temporalclient.WorkflowRun{c.startRun(contract.KindCollection), c.startRun(contract.KindSynchronization)}
	for _, run := range runs {
		c.awaitActivity(run, contract.SynchronizeBackups.Name)
	}
	require.NoError(t, rollout.Replace(c.Subjects))
	close(goOn)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, run := range runs {
		require.NoError(t, run.Get(ctx, nil), run.GetID())
	}
	_, err := c.Driver.Pending()
	require.NoError(t, err)
	require.NoError(t, c.AwaitRestarts(1, patience))
	rollouts.RequireServed(t, r.temporal, c.workflows(), began)
}

// startRun starts a workflow as its Schedule does.
func (c *testCase) startRun(kind contract.Kind) temporalclient.WorkflowRun {
	c.t.Helper()
	started, err := c.temporal.ExecuteWorkflow(c.t.Context(), temporalclient.StartWorkflowOptions{
		ID: contract.ScheduleID(c.namespace, kind) + "-by-hand", TaskQueue: kind.TaskQueue(c.namespace),
		WorkflowTaskTimeout: contract.WorkflowTaskTimeout, TypedSearchAttributes: kind.Attributes(c.namespace, contract.ObjectRef{}),
	}, kind.Workflow, contract.ScheduledInput{Cluster: c.namespace})
	require.NoError(c.t, err)
	return started
}

// awaitActivity waits until a run is at an activity.
func (c *testCase) awaitActivity(run temporalclient.WorkflowRun, activity string) {
	c.t.Helper()
	c.poll(patience, func() error {
		ctx, cancel := context.WithTimeout(c.t.Context(), callPatience)
		defer cancel()
		described, err := c.temporal.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(described.PendingActivities, func(pending *workflowpb.PendingActivityInfo) bool {
			return pending.ActivityType.Name == activity && pending.State == enumspb.PENDING_ACTIVITY_STATE_STARTED
		}) {
			return nil
		}
		return fmt.Errorf("%s has not come to %s: %v", run.GetID(), activity, described.PendingActivities)
	})
}
