package gate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/holdfast/activities/gate"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const queue = "holdfast-west"

// server is a Temporal that lists these runs, and has these histories.
type server struct {
	client.Client
	runs      []*workflowpb.WorkflowExecutionInfo
	histories map[string]*historypb.History
	queries   []string
	err       error
}

// ListWorkflow implements client.Client: two runs a page.
func (s *server) ListWorkflow(
	_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.queries = append(s.queries, request.Query)
	at := len(request.NextPageToken)
	end := min(at+2, len(s.runs))
	page := &workflowservice.ListWorkflowExecutionsResponse{Executions: s.runs[at:end]}
	if end < len(s.runs) {
		page.NextPageToken = make([]byte, end)
	}
	return page, s.err
}

// GetWorkflowHistory implements client.Client.
func (s *server) GetWorkflowHistory(
	_ context.Context, id, _ string, _ bool, _ enumspb.HistoryEventFilterType,
) client.HistoryEventIterator {
	return &iterator{history: s.histories[id]}
}

type iterator struct {
	history *historypb.History
	at      int
}

// HasNext implements client.HistoryEventIterator.
func (i *iterator) HasNext() bool { return i.history == nil || i.at < len(i.history.Events) }

// Next implements client.HistoryEventIterator.
func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	if i.history == nil {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	i.at++
	return i.history.Events[i.at-1], nil
}

// add adds an open run with this history; nil is one that is deleted meanwhile.
func (s *server) add(name, id string, history *historypb.History) {
	s.runs = append(s.runs, &workflowpb.WorkflowExecutionInfo{
		Type: &commonpb.WorkflowType{Name: name}, Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "r-" + id},
	})
	if s.histories == nil {
		s.histories = map[string]*historypb.History{}
	}
	s.histories[id] = history
}

func all(registry worker.WorkflowRegistry) { workflows.Register(registry, call.Options{}) }

// run runs the activity over a server, and returns the lines of its log too.
func run(t *testing.T, s *server, register func(worker.WorkflowRegistry), each int) (contract.GateResult, *observer.ObservedLogs, error) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	gate.Activities{Log: zap.New(core), Temporal: s, Namespace: "default"}.Of(register).Register(env)
	answer, err := env.ExecuteActivity(contract.ReplayOpenWorkflows.Name, contract.GateRequest{
		TaskQueue: queue, GateInput: contract.GateInput{Each: each},
	})
	var result contract.GateResult
	if err == nil {
		require.NoError(t, answer.Get(&result))
	}
	return result, logs, err
}

// recorded reads the recorded histories.
func recorded(t *testing.T) map[string]*historypb.History {
	t.Helper()
	paths, err := filepath.Glob("../../test/histories/baseline/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	found := map[string]*historypb.History{}
	for _, path := range paths {
		file, err := os.Open(path)
		require.NoError(t, err)
		history, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
		require.NoError(t, err)
		require.NoError(t, file.Close())
		found[strings.TrimSuffix(filepath.Base(path), ".json")] = history
	}
	return found
}

// isBegun reports whether a worker has completed a task.
func isBegun(history *historypb.History) bool {
	return slices.ContainsFunc(history.Events, func(event *historypb.HistoryEvent) bool {
		return event.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
	})
}

func typeOf(name string) string {
	before, _, _ := strings.Cut(name, ".")
	return before
}

// parts returns what a server would have shown of a history at up to some moments before its end: in the midst of a workflow task,
// before it, after it. Temporal writes what a task has led to at once.
func parts(history *historypb.History, most int) []*historypb.History {
	var ends []int
	for i, event := range history.Events {
		switch event.EventType {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
			ends = append(ends, i, i+1)
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			ends = append(ends, i+1)
		}
	}
	var found []*historypb.History
	for i := range ends {
		if len(ends) <= most || i%(len(ends)/most) == 0 || i > len(ends)-4 {
			found = append(found, &historypb.History{Events: history.Events[:ends[i]]})
		}
	}
	return found
}

func TestEveryRecordedHistoryPasses(t *testing.T) {
	s, begun := &server{}, 0
	for name, history := range recorded(t) {
		s.add(typeOf(name), name, history)
		if isBegun(history) {
			begun++
		}
	}
	result, logs, err := run(t, s, all, 100)
	require.NoError(t, err)
	replayed := 0
	for _, each := range result.Types {
		replayed += each.Replayed
	}
	assert.Equal(t, begun, replayed)
	assert.Equal(t, len(s.runs), replayed+result.New)
	assert.Zero(t, logs.Len())
	assert.Equal(t, "TaskQueue = 'holdfast-west' AND ExecutionStatus = 'Running'", s.queries[0])
}

// A workflow that is open has a history without an end, often in the midst of a task.
func TestAHistoryThatIsUnderWayPasses(t *testing.T) {
	s, count := &server{}, 0
	for name, history := range recorded(t) {
		for i, part := range parts(history, 4) {
			s.add(typeOf(name), name+strings.Repeat("+", i), part)
			count++
		}
	}
	require.Greater(t, count, 300)
	for len(s.runs) > 0 { // a gate replays 1000 at most
		some := &server{runs: s.runs[:min(len(s.runs), 100)], histories: s.histories}
		s.runs = s.runs[len(some.runs):]
		result, _, err := run(t, some, all, 100)
		require.NoError(t, err)
		assert.Zero(t, result.Gone+result.Pinned+result.TooLarge)
	}
}

// sleeps registers every type as code that first waits: no history has that.
func sleeps(registry worker.WorkflowRegistry) {
	for _, kind := range workflows.Kinds() {
		registry.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
			return workflow.Sleep(ctx, time.Hour)
		}, workflow.RegisterOptions{Name: kind.Workflow})
	}
}

func TestABuildThatDoesNotReplayIsHeldAndNoPayloadIsShown(t *testing.T) {
	s := &server{}
	for name, history := range recorded(t) {
		if typeOf(name) == contract.KindBackup.Workflow && isBegun(history) {
			s.add(typeOf(name), "west/"+name, history)
		}
	}
	_, logs, err := run(t, s, sleeps, 100)
	var held *temporal.ApplicationError
	require.ErrorAs(t, err, &held)
	assert.Equal(t, contract.ErrorDoesNotReplay, held.Type())
	assert.True(t, held.NonRetryable())
	assert.Contains(t, held.Message(), "open workflows do not replay on this build: it must not become current")
	assert.Contains(t, held.Message(), "NonAdminBackup west/NonAdminBackup.")
	assert.Contains(t, held.Message(), "TMPRL1100")
	var findings []contract.GateFinding
	require.NoError(t, held.Details(&findings))
	assert.Len(t, findings, 10, "the others are counted")
	assert.Equal(t, len(s.runs), logs.FilterMessage("workflow does not replay").Len(), "and all are in the log")
	for _, line := range logs.All() {
		shown := line.Message + " " + zapText(line.ContextMap())
		for _, payload := range []string{"Payloads", "{", "metadata", "json/plain"} {
			assert.NotContains(t, shown+held.Message(), payload)
		}
	}
}

func zapText(fields map[string]any) string {
	var text strings.Builder
	for name, value := range fields {
		text.WriteString(name + "=" + value.(string) + " ")
	}
	return text.String()
}

// A type that this build lacks: what it would be made current for is stuck as well.
func TestAnUnknownTypeIsHeld(t *testing.T) {
	s := &server{}
	for name, history := range recorded(t) {
		if strings.HasPrefix(name, "NonAdminRestore.") {
			s.add("NonAdminRestore", name, history)
		}
	}
	_, _, err := run(t, s, func(worker.WorkflowRegistry) {}, 1)
	require.ErrorContains(t, err, "unable to find workflow type: NonAdminRestore")
}

// served is a history of one task that has started a timer, and of a further task under way.
func served(behavior enumspb.VersioningBehavior) *historypb.History {
	history := &historypb.History{Events: []*historypb.HistoryEvent{
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				WorkflowType: &commonpb.WorkflowType{Name: "Timer"}, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
			},
		}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{
				ScheduledEventId: 2, StartedEventId: 3, VersioningBehavior: behavior,
			},
		}},
		{EventType: enumspb.EVENT_TYPE_TIMER_STARTED, Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
			TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{TimerId: "5", WorkflowTaskCompletedEventId: 4},
		}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: "changed"},
		}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED},
	}}
	for i, event := range history.Events {
		event.EventId = int64(i) + 1
	}
	return history
}

// registering registers the code of workflow type Timer.
func registering(code func(workflow.Context) error) func(worker.WorkflowRegistry) {
	return func(registry worker.WorkflowRegistry) {
		registry.RegisterWorkflowWithOptions(code, workflow.RegisterOptions{Name: "Timer"})
	}
}

// The replayer alone leaves out what the last completed task has led to, if a further one is under way.
func TestTheLastCompletedTaskIsReplayedToo(t *testing.T) {
	s := &server{}
	s.add("Timer", "one", served(enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE))
	_, _, err := run(t, s, registering(func(ctx workflow.Context) error { return workflow.Sleep(ctx, time.Hour) }), 1)
	require.NoError(t, err)
	_, _, err = run(t, s, registering(func(ctx workflow.Context) error {
		workflow.GetSignalChannel(ctx, "changed").Receive(ctx, nil)
		return nil
	}), 1)
	require.ErrorContains(t, err, "Timer one (run r-one): TMPRL1100")
}

func TestWhatNeedNotReplayIsCounted(t *testing.T) {
	s := &server{}
	s.add("Timer", "pinned", served(enumspb.VERSIONING_BEHAVIOR_PINNED))
	s.add("Timer", "gone", nil)
	s.add("Timer", "new", &historypb.History{Events: served(0).Events[:3]})
	large := proto.CloneOf(served(enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE))
	large.Events[5].GetWorkflowExecutionSignaledEventAttributes().Identity = strings.Repeat("x", 17<<20)
	s.add("Timer", "large", large)
	s.add(contract.KindGate.Workflow, "itself", nil)
	result, _, err := run(t, s, func(worker.WorkflowRegistry) {}, 0)
	require.NoError(t, err)
	assert.Equal(t, contract.GateResult{
		Types: []contract.GateType{{Workflow: "Timer", Open: 4}}, Pinned: 1, Gone: 1, New: 1, TooLarge: 1,
	}, result)
}

// A gate that cannot read Temporal is tried again; it passes nobody.
func TestAnErrorOfTemporalIsNotFinal(t *testing.T) {
	_, _, err := run(t, &server{err: errors.New("connection refused")}, all, 0)
	require.ErrorContains(t, err, "list the open workflows of task queue holdfast-west: connection refused")
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	assert.False(t, application.NonRetryable())
}
