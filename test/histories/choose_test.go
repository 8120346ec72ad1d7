package histories

import (
	"testing"

	"github.com/stretchr/testify/assert"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// A long history with a rare event has its place before short ones with many paths.
func TestEveryRareEventIsChosenAndThenWhatFits(t *testing.T) {
	of := func(path string, size int64, events ...enumspb.EventType) Recorded {
		history := &historypb.History{Events: []*historypb.HistoryEvent{{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
					WorkflowType: &commonpb.WorkflowType{Name: "Type"},
				},
			},
		}}}
		for _, event := range events {
			history.Events = append(history.Events, &historypb.HistoryEvent{EventType: event})
		}
		return Recorded{Path: path, Size: size, History: history}
	}
	const (
		timer, timedOut = enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT
		fired, cancels  = enumspb.EVENT_TYPE_TIMER_FIRED, enumspb.EVENT_TYPE_TIMER_CANCELED
	)
	all := []Recorded{
		of("a", 10, timer, fired), of("b", 10, timer, cancels), of("c", 10, timer, fired, cancels), of("d", 80, timedOut), of("e", 90, timedOut),
	}
	names := func(chosen []Recorded) (names []string) {
		for _, each := range chosen {
			names = append(names, each.Path)
		}
		return names
	}
	assert.Equal(t, []string{"c", "d"}, names(Choose(all, 90)))
	assert.Equal(t, []string{"b", "c", "d"}, names(Choose(all, 100)))
	assert.Equal(t, []string{"b", "c", "d"}, names(Choose(all, 1000)), "the others bring nothing more")
}
