// Package histories keeps recorded histories of every workflow type and replays them against the workflow code as it is: a change
// that would break a workflow under way fails here. `make histories` records them and chooses which are kept.
package histories

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// Baseline is the folder of the histories that must replay, and Limit what its files may take together, in bytes: 5 MiB.
const (
	Baseline = "baseline"
	Limit    = 5 << 20
)

// CommitFile is a file in that folder: it names the commit of this project whose code recorded them.
const CommitFile = "COMMIT"

// Newer are the workflow types that the code of the baseline does not know: no run of theirs can have begun with it, and its
// workers cannot go on with one. The next recording has them.
var Newer = map[string]bool{
	contract.KindPlan.Workflow: true, contract.KindPlanStart.Workflow: true, contract.KindDefaultPlans.Workflow: true,
	contract.KindVeleroQueue.Workflow: true, contract.KindDrill.Workflow: true, contract.KindFDBDrill.Workflow: true,
	contract.KindGate.Workflow: true, contract.KindHeartbeat.Workflow: true,
}

// Recorded is one history and its file.
type Recorded struct {
	Path string
	// Size is the file's, in bytes.
	Size    int64
	History *historypb.History
}

// Read reads all histories of a folder, in the order of their files' names.
func Read(folder string) ([]Recorded, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Recorded
	for _, path := range paths {
		recorded, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, recorded)
	}
	return all, nil
}

func read(path string) (Recorded, error) {
	file, err := os.Open(path)
	if err != nil {
		return Recorded{}, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return Recorded{}, err
	}
	history, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
	return Recorded{Path: path, Size: info.Size(), History: history}, err
}

// Type is the workflow type.
func (r Recorded) Type() string {
	return r.History.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
}

// Rare are the events that no ordinary run has.
type Rare string

// What each workflow type is recorded with, where it can have it.
const (
	Completed         Rare = "completed"
	ContinuedAsNew    Rare = "continued as new"
	AfterContinuation Rare = "run after that"
	LocalFailed       Rare = "local activity failed"
	TaskTimeout       Rare = "task timed out"
	CompletionRefused Rare = "completion refused" // because a signal came
)

// Rares are all of them.
var Rares = []Rare{Completed, ContinuedAsNew, AfterContinuation, LocalFailed, TaskTimeout, CompletionRefused}

// Rare lists those that the history has.
func (r Recorded) Rare() map[Rare]bool {
	has := map[Rare]bool{}
	for _, event := range r.History.Events {
		switch event.EventType {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			has[AfterContinuation] = event.GetWorkflowExecutionStartedEventAttributes().ContinuedExecutionRunId != ""
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			has[Completed] = true
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
			has[ContinuedAsNew] = true
		case enumspb.EVENT_TYPE_MARKER_RECORDED:
			if event.GetMarkerRecordedEventAttributes().Failure != nil {
				has[LocalFailed] = true
			}
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			has[TaskTimeout] = true
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
			if event.GetWorkflowTaskFailedEventAttributes().Cause == enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
				has[CompletionRefused] = true
			}
		}
	}
	return has
}

// Paths are the pairs of what the workflow did, or was sent, one right after the other.
func (r Recorded) Paths() map[string]bool {
	paths, last := map[string]bool{}, ""
	for _, event := range r.History.Events {
		if step := stepOf(event); step != "" {
			paths[last+" > "+step] = true
			last = step
		}
	}
	return paths
}

// stepOf names what an event says of the workflow's code, or of what it was sent; empty where it says neither.
func stepOf(event *historypb.HistoryEvent) string {
	switch event.EventType {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
		enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		return ""
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return "activity " + event.GetActivityTaskScheduledEventAttributes().ActivityType.Name
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		return "signal " + event.GetWorkflowExecutionSignaledEventAttributes().SignalName
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		return "Update " + event.GetWorkflowExecutionUpdateAcceptedEventAttributes().AcceptedRequest.Input.Name
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		return markerOf(event.GetMarkerRecordedEventAttributes())
	}
	return event.EventType.String()
}

func markerOf(marker *historypb.MarkerRecordedEventAttributes) string {
	text := marker.MarkerName
	if name := localActivity(marker.Details["data"]); name != "" {
		text += " " + name
	}
	if marker.Failure != nil {
		text += " failed"
	}
	return text
}

// localActivity is the type of the activity that a marker is of.
func localActivity(data *commonpb.Payloads) string {
	var local struct{ ActivityType string }
	if payloads := data.GetPayloads(); len(payloads) == 0 || json.Unmarshal(payloads[0].Data, &local) != nil {
		return ""
	}
	return local.ActivityType
}
