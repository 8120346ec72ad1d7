package watch_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/activities/fdb/coordination"
	"holdfast.dev/holdfast/activities/fdb/expiry"
	"holdfast.dev/holdfast/activities/plan"
	"holdfast.dev/holdfast/starter/watch/heartbeat"
	"holdfast.dev/holdfast/starter/watch/queue"
	"holdfast.dev/holdfast/starter/watch/schedules"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// starts is a Temporal in which nothing runs; it notes the fairness keys with which workflows are started, by their type.
type starts struct {
	client.Client
	keys map[any][]string
}

func (s *starts) note(workflow any, priority temporal.Priority) {
	s.keys[workflow] = append(s.keys[workflow], priority.FairnessKey)
}

// ExecuteWorkflow implements client.Client.
func (s *starts) ExecuteWorkflow(
	_ context.Context, options client.StartWorkflowOptions, workflow any, _ ...any,
) (client.WorkflowRun, error) {
	s.note(workflow, options.Priority)
	return nil, nil
}

// SignalWithStartWorkflow implements client.Client.
func (s *starts) SignalWithStartWorkflow(
	_ context.Context, _, _ string, _ any, options client.StartWorkflowOptions, workflow any, _ ...any,
) (client.WorkflowRun, error) {
	s.note(workflow, options.Priority)
	return nil, nil
}

// NewWithStartWorkflowOperation implements client.Client.
func (s *starts) NewWithStartWorkflowOperation(
	options client.StartWorkflowOptions, workflow any, _ ...any,
) client.WithStartWorkflowOperation {
	s.note(workflow, options.Priority)
	return nil
}

type accepted struct{ client.WorkflowUpdateHandle }

// Get implements client.WorkflowUpdateHandle.
func (accepted) Get(context.Context, any) error { return nil }

// UpdateWithStartWorkflow implements client.Client.
func (s *starts) UpdateWithStartWorkflow(
	context.Context, client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	return accepted{}, nil
}

// DescribeWorkflowExecution implements client.Client.
func (s *starts) DescribeWorkflowExecution(
	_ context.Context, id, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound(id)
}

// ScheduleClient implements client.Client.
func (s *starts) ScheduleClient() client.ScheduleClient { return noSchedules{starts: s} }

// noSchedules has no Schedule, and notes what those that are created start.
type noSchedules struct {
	client.ScheduleClient
	client.ScheduleHandle
	starts *starts
}

// GetHandle implements client.ScheduleClient.
func (n noSchedules) GetHandle(context.Context, string) client.ScheduleHandle { return n }

// Describe implements client.ScheduleHandle.
func (n noSchedules) Describe(context.Context) (*client.ScheduleDescription, error) {
	return nil, serviceerror.NewNotFound("no such Schedule")
}

// Create implements client.ScheduleClient.
func (n noSchedules) Create(_ context.Context, options client.ScheduleOptions) (client.ScheduleHandle, error) {
	action := options.Action.(*client.ScheduleWorkflowAction)
	n.starts.note(action.Workflow, action.Priority)
	return n, nil
}

// run runs an activity that starts workflows.
func (s *starts) run(activity string, in any) error {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	(&coordination.Activities{Temporal: s}).Register(env)
	(&expiry.Coordination{Temporal: s}).Register(env)
	_, err := env.ExecuteActivity(activity, in)
	return err
}

// Every workflow that serves a tenant's object has the namespace as its fairness key, in each way in which it is started. Those
// that serve all namespaces have none. A new kind that is started in another way than by the watcher has to be added here.
func TestEveryWorkflowOfATenantHasItsFairnessKey(t *testing.T) {
	ref := contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "u-1"}
	s := &starts{keys: map[any][]string{}}
	watcher := &connect.Cluster{Client: s, ClusterID: "west"}
	activity := func(name string, in any) func() error { return func() error { return s.run(name, in) } }
	periodic := func(kind contract.Kind) func() error {
		keeper := &schedules.Temporal{Client: s, ClusterID: "west"}
		return func() error { return keeper.Keep(t.Context(), kind, time.Hour) }
	}
	ways := map[string]struct {
		key   string
		start func() error
	}{
		contract.KindPlanStart.Workflow: {ref.Namespace, func() error {
			_, err := (&plan.Temporal{Client: s}).Keep(t.Context(), "west", ref, plan.Wanted{})
			return err
		}},
		contract.KindVeleroQueue.Workflow: {"", func() error {
			return (&queue.Temporal{Client: s, ClusterID: "west"}).Signal(t.Context(), contract.TurnNews{}, true)
		}},
		contract.KindFDBExpiry.Workflow: {
			ref.Namespace, activity(contract.StartFDBExpiry.Name, contract.FDBExpiryInput{Cluster: "west", Ref: ref}),
		},
		contract.KindFDBThrottle.Workflow: {
			"", activity(contract.SignalFDBThrottle.Name, contract.FDBSlotRequest{Cluster: "west"}),
		},
		contract.KindFDBExpiryQueue.Workflow: {
			"", activity(contract.SignalFDBExpiryQueue.Name, contract.FDBQueueRequest{Cluster: "west", Ref: ref}),
		},
		contract.KindFDBCluster.Workflow: {
			"", activity(contract.RequestFDBCommand.Name, contract.FDBCommandRequest{Cluster: "lab:1"}),
		},
		contract.KindFDBContainer.Workflow: {
			"", activity(contract.RequestFDBContainer.Name, contract.FDBContainerRequest{Container: "host:1/bucket/path"}),
		},
		contract.KindHeartbeat.Workflow: {"", func() error {
			return (&heartbeat.Temporal{Client: s, ClusterID: "west"}).Send(t.Context(), contract.WatcherState{})
		}},
		contract.KindCollection.Workflow:      {"", periodic(contract.KindCollection)},
		contract.KindSynchronization.Workflow: {"", periodic(contract.KindSynchronization)},
		contract.KindDefaultPlans.Workflow:    {"", periodic(contract.KindDefaultPlans)},
	}
	for _, kind := range workflows.Kinds() {
		if kind.Workflow == contract.KindFinalization.Workflow {
			continue // the child of a restore, which inherits the key: see test/env
		}
		if kind.Workflow == contract.KindGate.Workflow {
			continue // no tenant's: who rolls out a new version starts it
		}
		way, is := ways[kind.Workflow]
		if is {
			require.NoError(t, way.start(), kind.Workflow)
			assert.Equal(t, []string{way.key}, s.keys[kind.Workflow], kind.Workflow)
			continue
		}
		require.NotEmpty(t, kind.Kubernetes, "%s serves no object: say here how it is started", kind.Workflow)
		require.NoError(t, watcher.SignalWithStart(t.Context(), kind.Kind, ref, contract.Changed{}))
		require.NoError(t, watcher.Ensure(t.Context(), kind.Kind, ref))
		assert.Equal(t, []string{ref.Namespace, ref.Namespace}, s.keys[kind.Workflow], kind.Workflow)
	}
}
