package heartbeat_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

var begin = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// beat runs the workflow over signals, until it continues as new, and returns the heartbeats that its memo had one after the other.
// While a worker is inspected, inspected is called.
func beat(t *testing.T, inspected, signals func(env *testsuite.TestWorkflowEnvironment)) []contract.Heartbeat {
	t.Helper()
	env := environment.New(&testsuite.WorkflowTestSuite{})
	env.SetStartTime(begin)
	workflows.Register(env, call.Options{})
	env.RegisterActivityWithOptions(func(contract.HeartbeatInput) (contract.WorkerState, error) {
		inspected(env)
		return contract.WorkerState{Version: "v2", Kubernetes: "v1.36.3"}, nil
	}, activity.RegisterOptions{Name: contract.InspectWorker.Name})
	var kept []contract.Heartbeat
	env.OnUpsertMemo(mock.Anything).Run(func(args mock.Arguments) {
		next := args.Get(0).(map[string]any)[contract.MemoHeartbeat].(contract.Heartbeat)
		if len(kept) > 0 && kept[len(kept)-1].At.Equal(next.At) { // signals of one moment may come one after the other here
			kept = kept[:len(kept)-1]
		}
		kept = append(kept, next)
	}).Return(nil)
	signals(env)
	env.ExecuteWorkflow(contract.KindHeartbeat.Workflow, contract.HeartbeatInput{Cluster: "west"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	var next contract.HeartbeatInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	assert.Equal(t, contract.HeartbeatInput{Cluster: "west", ClusterUID: kept[len(kept)-1].Watcher.ClusterUID}, next)
	return kept
}

func TestTheMemoHoldsTheNewestHeartbeat(t *testing.T) {
	oldest := &contract.UnfinishedObject{Kind: "NonAdminBackup", Namespace: "team", Name: "nightly"}
	kept := beat(t, func(*testsuite.TestWorkflowEnvironment) {}, func(env *testsuite.TestWorkflowEnvironment) {
		send := func(at time.Duration, states ...any) {
			env.RegisterDelayedCallback(func() {
				for _, state := range states {
					env.SignalWorkflow(contract.SignalHeartbeat, state)
				}
			}, at)
		}
		send(time.Second, contract.WatcherState{Version: "v1", Unfinished: 1, Oldest: oldest})
		// A worker that was away finds many. Nothing of those before is left in the last, and what cannot be read is skipped.
		send(time.Minute, contract.WatcherState{Version: "v1", Oldest: oldest}, contract.WatcherState{Version: "v2", Stalled: 3}, "?")
		env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, 90*time.Second)
		// What can be read in part leaves nothing behind.
		send(2*time.Minute, map[string]any{"problem": "forged", "oldest": oldest, "unfinished": "many"}, contract.WatcherState{Version: "v3"})
	})
	worker := contract.WorkerState{Version: "v2", Kubernetes: "v1.36.3"}
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	assert.Equal(t, []contract.Heartbeat{
		{At: at(1), Watcher: contract.WatcherState{Version: "v1", Unfinished: 1, Oldest: oldest}, Worker: worker},
		{At: at(60), Watcher: contract.WatcherState{Version: "v2", Stalled: 3}, Worker: worker},
		{At: at(120), Watcher: contract.WatcherState{Version: "v3"}, Worker: worker},
	}, kept)
}

// Two Kubernetes clusters have one ID: it belongs to the first, also in the next run. Earlier versions do not say which they are.
func TestAClusterIDBelongsToTheFirstCluster(t *testing.T) {
	kept := beat(t, func(*testsuite.TestWorkflowEnvironment) {}, func(env *testsuite.TestWorkflowEnvironment) {
		for at, uid := range []string{"", "first", "other", "", "first", "other", "first"} {
			env.RegisterDelayedCallback(func() {
				env.SetContinueAsNewSuggested(at == 6)
				env.SignalWorkflow(contract.SignalHeartbeat, contract.WatcherState{ClusterUID: uid, Unfinished: at})
			}, time.Duration(at+1)*contract.HeartbeatInterval)
		}
	})
	var (
		of   []int
		uids []string
	)
	for _, heartbeat := range kept {
		of, uids = append(of, heartbeat.Watcher.Unfinished), append(uids, heartbeat.Watcher.ClusterUID)
	}
	assert.Equal(t, []int{0, 1, 3, 4, 6}, of)
	assert.Equal(t, []string{"", "first", "first", "first", "first"}, uids, "an earlier version does not release the ID")
}

// While no worker ran, two Kubernetes clusters have sent heartbeats with an ID that belongs to none yet.
func TestOfHeartbeatsThatWaitOnlyTheOwnersCount(t *testing.T) {
	inspections := 0
	kept := beat(t, func(env *testsuite.TestWorkflowEnvironment) {
		if inspections++; inspections == 1 {
			for n, uid := range []string{"first", "other", "first", "other"} {
				env.SignalWorkflow(contract.SignalHeartbeat, contract.WatcherState{ClusterUID: uid, Unfinished: n})
			}
			env.SetContinueAsNewSuggested(true)
		}
	}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(contract.SignalHeartbeat, contract.WatcherState{}) }, time.Minute)
	})
	assert.Equal(t, 2, inspections)
	assert.Equal(t, contract.WatcherState{ClusterUID: "first", Unfinished: 2}, kept[len(kept)-1].Watcher)
}

// What comes while the worker is inspected counts once: a workflow task that finds a thousand heartbeats inspects it once.
// A heartbeat that has waited for a worker is as old as its watcher says.
func TestHeartbeatsThatWaitCountOnce(t *testing.T) {
	inspections := 0
	kept := beat(t, func(env *testsuite.TestWorkflowEnvironment) {
		if inspections++; inspections == 1 {
			for n := range 1000 {
				env.SignalWorkflow(contract.SignalHeartbeat, contract.WatcherState{Unfinished: n, Sent: begin.Add(-time.Hour)})
			}
			env.SetContinueAsNewSuggested(true)
		}
	}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(contract.SignalHeartbeat, contract.WatcherState{Sent: begin.Add(time.Hour)})
		}, time.Minute)
	})
	assert.Equal(t, 2, inspections)
	require.Len(t, kept, 2)
	assert.Equal(t, begin.Add(time.Minute), kept[0].At, "a watcher whose clock is ahead is not heard of in the future")
	assert.Equal(t, 999, kept[1].Watcher.Unfinished)
	assert.Equal(t, begin.Add(-time.Hour), kept[1].At)
}
