package turns_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/turns"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// deskIdle is how long a desk without requests stays open. apart keeps what happens apart from the clock.
const (
	deskIdle = 20 * time.Second
	apart    = 3 * time.Millisecond
)

// desk is a minimal run on a Loop. It serves requests by Update, each in its handler, and by signal, each in a pass. What it has
// served outlives a run.
type desk struct {
	served  []string
	signals workflow.ReceiveChannel
	heardAt time.Time
	idle    workflow.Future
}

type deskRequest struct {
	Name  string
	Takes time.Duration
}

func runDesk(ctx workflow.Context, served []string) ([]string, error) {
	d := &desk{served: served, signals: workflow.GetSignalChannel(ctx, "request"), heardAt: workflow.Now(ctx)}
	err := workflow.SetUpdateHandler(ctx, "request", func(ctx workflow.Context, request deskRequest) error {
		return d.serve(ctx, request)
	})
	if err != nil {
		return nil, err
	}
	err = turns.Loop{
		Pass: d.pass,
		Due: func(ctx workflow.Context) bool {
			return d.signals.Len() > 0 || (!d.deserted(ctx) && (d.idle == nil || d.idle.IsReady()))
		},
		AtRest: func() bool { return true }, Deserted: d.deserted,
		Next: func(ctx workflow.Context) error { return workflow.NewContinueAsNewError(ctx, "desk", d.served) },
	}.Serve(ctx)
	return d.served, err
}

func (d *desk) serve(ctx workflow.Context, request deskRequest) error {
	d.heardAt = workflow.Now(ctx)
	if err := workflow.Sleep(ctx, request.Takes); err != nil {
		return err
	}
	d.served = append(d.served, request.Name)
	return nil
}

func (d *desk) pass(ctx workflow.Context) error {
	var request deskRequest
	if d.signals.ReceiveAsync(&request) { // others may be there, or come meanwhile
		if err := d.serve(ctx, request); err != nil {
			return err
		}
	}
	if left := d.heardAt.Add(deskIdle).Sub(workflow.Now(ctx)); left > 0 {
		d.idle = workflow.NewTimer(ctx, left)
	}
	return nil
}

func (d *desk) deserted(ctx workflow.Context) bool {
	return workflow.Now(ctx).Sub(d.heardAt) >= deskIdle
}

// deskEvent is a request by signal or Update, or the advice to continue as new, at a time after the start.
type deskEvent struct {
	at   time.Duration
	what string
	deskRequest
}

// desks are runs of a desk, one after the other.
type desks struct {
	events   []deskEvent
	done     int // events that have happened
	served   []string
	answered []string
}

// play runs desks until all events have happened. An event after the end of a run starts the next one.
func (d *desks) play() error {
	for at := time.Duration(0); d.done < len(d.events); {
		at = max(at, d.events[d.done].at)
		suite := &testsuite.WorkflowTestSuite{}
		suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
		env := environment.New(suite)
		start := time.Unix(1_000_000, 0)
		env.SetStartTime(start.Add(at))
		env.RegisterWorkflowWithOptions(runDesk, workflow.RegisterOptions{Name: "desk"})
		for i := d.done; i < len(d.events); i++ {
			env.RegisterDelayedCallback(func() { d.happens(env, i) }, max(d.events[i].at-at, 0))
		}
		env.ExecuteWorkflow("desk", d.served)
		at = env.Now().Sub(start)
		err := env.GetWorkflowError()
		var again *workflow.ContinueAsNewError
		switch {
		case errors.As(err, &again):
			err = converter.GetDefaultDataConverter().FromPayloads(again.Input, &d.served)
		case err == nil:
			err = env.GetWorkflowResult(&d.served)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *desks) happens(env *testsuite.TestWorkflowEnvironment, i int) {
	if i != d.done || env.IsWorkflowCompleted() {
		return // the next run has it
	}
	d.done++
	switch event := d.events[i]; event.what {
	case "signal":
		env.SignalWorkflow("request", event.deskRequest)
	case "update":
		env.UpdateWorkflow("request", event.Name, &testsuite.TestUpdateCallback{
			OnReject: func(error) {}, OnAccept: func() {}, OnComplete: func(_ any, err error) {
				if err == nil {
					d.answered = append(d.answered, event.Name)
				}
			},
		}, event.deskRequest)
	default:
		env.SetContinueAsNewSuggested(true)
	}
}

// TestNoRequestIsLost: at whatever moment a request comes, it is served once, and an Update is answered; also while the run is
// about to end, or to continue as new.
func TestNoRequestIsLost(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d := &desks{}
		var at time.Duration
		var sent, asked []string
		for i := range rapid.IntRange(1, 30).Draw(t, "events") {
			// Not at the moment of a timer: in the test's environment a signal may come between the end of a run and its completion.
			at += time.Duration(rapid.SampledFrom([]int{0, 1, 1, 2, 5, 19, 20, 21, 50}).Draw(t, "seconds later"))*time.Second + apart
			event := deskEvent{at: at, what: rapid.SampledFrom([]string{"signal", "signal", "update", "update", "continue"}).Draw(t, "what")}
			event.Name = fmt.Sprint(i)
			event.Takes = time.Duration(rapid.SampledFrom([]int{0, 1, 3, 30}).Draw(t, "takes")) * time.Second
			d.events = append(d.events, event)
			switch event.what {
			case "update":
				sent, asked = append(sent, event.Name), append(asked, event.Name)
			case "signal":
				sent = append(sent, event.Name)
			}
		}
		require.NoError(t, d.play())
		require.ElementsMatch(t, sent, d.served)
		require.ElementsMatch(t, asked, d.answered)
	})
}

// TestACancelledRunYields: a cancellation ends timers, also those that are set after it. A run that goes on because of them would
// never yield, and Temporal would fail its workflow task for ever. The other tests' environment ends timers later, so this one
// replays a history.
func TestACancelledRunYields(t *testing.T) {
	input, err := converter.GetDefaultDataConverter().ToPayloads([]string{})
	require.NoError(t, err)
	history := &historypb.History{Events: []*historypb.HistoryEvent{
		{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, EventTime: timestamppb.New(time.Unix(1_000_000, 0)),
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
					WorkflowType: &commonpb.WorkflowType{Name: "desk"}, Input: input, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"},
				},
			},
		},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, EventTime: timestamppb.New(time.Unix(1_000_001, 0))},
		completed(2),
		{EventType: enumspb.EVENT_TYPE_TIMER_STARTED, Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
			TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{TimerId: "5"},
		}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, EventTime: timestamppb.New(time.Unix(1_000_002, 0))},
		completed(7),
		{EventType: enumspb.EVENT_TYPE_TIMER_CANCELED, Attributes: &historypb.HistoryEvent_TimerCanceledEventAttributes{
			TimerCanceledEventAttributes: &historypb.TimerCanceledEventAttributes{TimerId: "5", StartedEventId: 5},
		}},
		{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionCanceledEventAttributes{
				WorkflowExecutionCanceledEventAttributes: &historypb.WorkflowExecutionCanceledEventAttributes{},
			},
		},
	}}
	for i, event := range history.Events {
		event.EventId = int64(i + 1)
	}
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(runDesk, workflow.RegisterOptions{Name: "desk"})
	require.NoError(t, replayer.ReplayWorkflowHistory(nil, history))
}

// completed is the end of the workflow task that was scheduled by an event.
func completed(scheduled int64) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
		Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{
				ScheduledEventId: scheduled, StartedEventId: scheduled + 1,
			},
		},
	}
}
