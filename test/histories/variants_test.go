package histories_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast.dev/holdfast/test/histories"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// Not every type is recorded with a task that timed out: a recorded history must replay as well if one of its tasks had.
func TestReplayOfATaskThatTimedOut(t *testing.T) {
	replayVariants(t, func(history *historypb.History) (*historypb.History, histories.Rare) {
		task := tasks(history)
		if len(task) == 0 {
			return nil, ""
		}
		at := task[len(task)/2]
		return again(history, at, &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
			Attributes: &historypb.HistoryEvent_WorkflowTaskTimedOutEventAttributes{
				WorkflowTaskTimedOutEventAttributes: &historypb.WorkflowTaskTimedOutEventAttributes{
					ScheduledEventId: history.Events[at].GetWorkflowTaskStartedEventAttributes().ScheduledEventId,
					StartedEventId:   history.Events[at].EventId, TimeoutType: enumspb.TIMEOUT_TYPE_START_TO_CLOSE,
				},
			},
		}), histories.TaskTimeout
	})
}

// The same for a turn whose completion was refused because of a late event of its pod: only its own loop ends without a look at the
// signals.
func TestReplayOfACompletionThatWasRefused(t *testing.T) {
	replayVariants(t, func(history *historypb.History) (*historypb.History, histories.Rare) {
		last := history.Events[len(history.Events)-1]
		kind := history.Events[0].GetWorkflowExecutionStartedEventAttributes().WorkflowType.Name
		if kind != contract.KindFDBExpiry.Workflow || last.EventType != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED {
			return nil, ""
		}
		task := tasks(history)
		at := task[len(task)-1]
		input, err := converter.GetDefaultDataConverter().ToPayloads(contract.Changed{Reason: "late"})
		require.NoError(t, err)
		return again(history, at, &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
				WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
					ScheduledEventId: history.Events[at].GetWorkflowTaskStartedEventAttributes().ScheduledEventId,
					StartedEventId:   history.Events[at].EventId, Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
				},
			},
		}, &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
				WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
					SignalName: contract.SignalChanged, Input: input,
				},
			},
		}), histories.CompletionRefused
	})
}

// replayVariants replays every recorded history of which there is a variant, which must have the rare event.
func replayVariants(t *testing.T, variantOf func(*historypb.History) (*historypb.History, histories.Rare)) {
	t.Helper()
	byType := map[string][]histories.Recorded{}
	for _, each := range recorded(t) {
		byType[each.Type()] = append(byType[each.Type()], each)
	}
	for name, all := range byType {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			workflows.Register(replayer, call.Options{})
			for _, each := range all {
				variant, rare := variantOf(each.History)
				if variant == nil {
					continue
				}
				assert.True(t, histories.Recorded{History: variant}.Rare()[rare], each.Path)
				assert.NoError(t, replayer.ReplayWorkflowHistory(nil, variant), each.Path)
			}
		})
	}
}

// tasks are where, among the events, the workflow tasks begin that were completed.
func tasks(history *historypb.History) (started []int) {
	for i, event := range history.Events {
		if event.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			started = append(started, i-1)
		}
	}
	return started
}

// again is the history with a task that came to these events instead, and is tried again.
func again(history *historypb.History, started int, came ...*historypb.HistoryEvent) *historypb.History {
	events := proto.Clone(history).(*historypb.History).Events
	begun, rest := events[started], events[started+1:]
	scheduled := events[begun.GetWorkflowTaskStartedEventAttributes().ScheduledEventId-1]
	more := slices.Clone(came)
	for _, event := range []*historypb.HistoryEvent{scheduled, begun} {
		more = append(more, proto.Clone(event).(*historypb.HistoryEvent))
	}
	for i, event := range more {
		event.EventId, event.EventTime = begun.EventId+int64(i)+1, begun.EventTime
	}
	for _, event := range rest {
		moveIDs(event.ProtoReflect(), begun.EventId, int64(len(more)))
	}
	last := begun.EventId + int64(len(more))
	more[len(more)-1].GetWorkflowTaskStartedEventAttributes().ScheduledEventId = last - 1
	completed := rest[0].GetWorkflowTaskCompletedEventAttributes()
	completed.ScheduledEventId, completed.StartedEventId = last-1, last
	return &historypb.History{Events: slices.Concat(events[:started+1], more, rest)}
}

// moveIDs adds to the IDs in a message of events that are later than one, and to what the SDK makes of such IDs: those of
// activities, timers, signals and, after an underscore, mutable side effects.
func moveIDs(message protoreflect.Message, than, by int64) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := string(field.Name())
		switch {
		case field.IsList() || field.IsMap():
		case field.Kind() == protoreflect.MessageKind:
			moveIDs(value.Message(), than, by)
		case field.Kind() == protoreflect.Int64Kind && strings.HasSuffix(name, "event_id") && value.Int() > than:
			message.Set(field, protoreflect.ValueOfInt64(value.Int()+by))
		case name == "activity_id" || name == "timer_id" || name == "control":
			message.Set(field, protoreflect.ValueOfString(moveID(value.String(), than, by)))
		}
		return true
	})
	marker, _ := message.Interface().(*historypb.MarkerRecordedEventAttributes)
	for _, id := range marker.GetDetails()["side-effect-id"].GetPayloads() {
		if before, number, found := strings.Cut(strings.Trim(string(id.Data), `"`), "_"); found {
			id.Data = []byte(`"` + before + "_" + moveID(number, than, by) + `"`)
		}
	}
}

func moveID(text string, than, by int64) string {
	if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > than {
		return strconv.FormatInt(id+by, 10)
	}
	return text
}
