package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/holdfast/workflows/contract"
)

// maxHistoryBytes is the largest history that is read: a worker has some hundred MiB, and Temporal ends a run at 50 MiB. Ours
// continue as new long before.
const maxHistoryBytes = 16 << 20

var errTooLarge = errors.New("the history is too large")

// history reads that of a run, as far as it has come.
func (a *Activities) history(ctx context.Context, run contract.GateFinding) (*historypb.History, error) {
	events := a.Temporal.GetWorkflowHistory(ctx, run.ID, run.Run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	history := &historypb.History{}
	size := 0
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, err
		}
		if size += proto.Size(event); size > maxHistoryBytes {
			return nil, errTooLarge
		}
		history.Events = append(history.Events, event)
	}
	return history, nil
}

// asServed returns a history as far as a worker has served it: to the end of what the last completed workflow task has led to;
// without events if there is none. What has come since, and a task that is under way, has led to nothing yet. With it the
// replayer would leave out the last completed task, or run code that no worker has run.
func asServed(history *historypb.History) *historypb.History {
	events := history.GetEvents()
	end := 0
	for i, event := range events {
		led := end == i && i > 0 && ledTo[event.GetEventType()]
		if led || event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			end = i + 1
		}
	}
	return &historypb.History{Events: events[:end]}
}

// ledTo are the events that follow a completed workflow task at once: what its commands have led to.
var ledTo = map[enumspb.EventType]bool{
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:                         true,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:                            true,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:                          true,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:                  true,
	enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:                              true,
	enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:                       true,
	enumspb.EVENT_TYPE_TIMER_STARTED:                                        true,
	enumspb.EVENT_TYPE_TIMER_CANCELED:                                       true,
	enumspb.EVENT_TYPE_MARKER_RECORDED:                                      true,
	enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:             true,
	enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:         true,
	enumspb.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED: true,
	enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:                    true,
	enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:                         true,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:                   true,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:                  true,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_REJECTED:                   true,
}

// pinned reports whether the workflow stays with the version that has served it last.
func pinned(history *historypb.History) bool {
	behavior := enumspb.VERSIONING_BEHAVIOR_UNSPECIFIED
	for _, event := range history.GetEvents() {
		if completed := event.GetWorkflowTaskCompletedEventAttributes(); completed != nil {
			behavior = completed.GetVersioningBehavior()
		}
	}
	return behavior == enumspb.VERSIONING_BEHAVIOR_PINNED
}

// replayAttempts: on a busy machine the replayer takes a workflow that does not get to run for a second for one that hangs.
const replayAttempts = 5

// replay returns how the code differs from a history; passed if it does not.
func (a *Activities) replay(run contract.GateFinding, history *historypb.History) string {
	var problem string
	for range replayAttempts {
		problem = a.replayOnce(run, history)
		if !strings.Contains(problem, codeDeadlock) {
			break
		}
	}
	return problem
}

func (a *Activities) replayOnce(run contract.GateFinding, history *historypb.History) (problem string) {
	defer func() {
		if recover() != nil { // the replayer panics with a history that it cannot begin
			problem = "the replayer cannot read the history"
		}
	}()
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: a.Data, FailureConverter: a.Failures,
	})
	if err != nil {
		return fmt.Sprintf("no replayer: %v", err)
	}
	a.workflows(replayer)
	// The replayer would log what is in the history, payloads included.
	silent := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	err = replayer.ReplayWorkflowHistoryWithOptions(silent, history, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: run.ID, RunID: run.Run},
	})
	if err == nil {
		return passed
	}
	return explain(err.Error())
}

// Codes of the SDK.
const (
	codeNondeterminism = "TMPRL1100"
	codeDeadlock       = "TMPRL1101"
)

// names match what an error of the replayer says, and no payload can be: the words of the SDK, names of types, IDs of events.
var names = []*regexp.Regexp{
	regexp.MustCompile(`history event is \w{1,64}`),
	regexp.MustCompile(`(missing|extra) replay command for \w{1,64}`),
	regexp.MustCompile(`replay command is \w{1,64}`),
	regexp.MustCompile(`a matching \w{1,64} command was expected in history event position \d+`),
	regexp.MustCompile(`code executed local activity [\w-]{1,64}, but history event found [\w-]{1,64}`),
	regexp.MustCompile(`unable to find workflow type: [\w-]{1,64}`),
	regexp.MustCompile(`payload encrypted with key "[\w.-]{1,64}"`),
	regexp.MustCompile(`replay workflow doesn't return the same result as the last event`),
	regexp.MustCompile(`invalid state transition|adding duplicate command|lookup failed for scheduledEventID`),
	regexp.MustCompile(`unable to find \w{1,64} for the \w{1,64}`),
	regexp.MustCompile(`Workflow code (removed support of|is too old to support) version \w{1,64}`),
	regexp.MustCompile(`MutableSideEffect API call doesn't have a correspondent event`),
	regexp.MustCompile(`Potential deadlock detected`),
	regexp.MustCompile(`ActivityType:\(Name:[\w-]{1,64}\)`),
}

// explain says what an error of the replayer does, without what it quotes of the history: inputs and results.
func explain(text string) string {
	var said []string
	for _, code := range []string{codeNondeterminism, codeDeadlock} {
		if strings.Contains(text, code) {
			said = append(said, code)
		}
	}
	for _, name := range names {
		for i, found := range name.FindAllString(text, -1) {
			if i < 2 {
				said = append(said, found)
			}
		}
	}
	if len(said) == 0 {
		return "the workflow's code fails with this history, see the failed task with: temporal workflow show"
	}
	return strings.Join(said, ", ")
}
