// Package histories replays every recorded history against the workflow code as it is: a change that would break a
// workflow under way fails here. The files of a release are recorded from its code by `make histories`, and only added.
package histories_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
)

func recorded(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("v*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files, "no histories: record them with `make histories`")
	return files
}

func read(t *testing.T, file string) *historypb.History {
	t.Helper()
	data, err := os.Open(file)
	require.NoError(t, err)
	defer data.Close()
	history, err := client.HistoryFromJSON(data, client.HistoryJSONOptions{})
	require.NoError(t, err, file)
	return history
}

func TestReplay(t *testing.T) {
	for _, file := range recorded(t) {
		t.Run(strings.TrimSuffix(file, ".json"), func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			workflows.Register(replayer, call.Options{})
			require.NoError(t, replayer.ReplayWorkflowHistory(nil, read(t, file)))
		})
	}
}

// TestHistoriesCoverWhatIsRare: the events that no ordinary run has are in the files of every release.
func TestHistoriesCoverWhatIsRare(t *testing.T) {
	rare := map[string]func(*historypb.HistoryEvent) bool{
		"local form failed, regular form scheduled": func(e *historypb.HistoryEvent) bool {
			return e.EventType == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
		},
		"completion refused because a signal came": func(e *historypb.HistoryEvent) bool {
			failed := e.GetWorkflowTaskFailedEventAttributes()
			return failed != nil && failed.Cause == enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND
		},
		"workflow task timed out after a kill": func(e *historypb.HistoryEvent) bool {
			return e.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT
		},
		"continued as new": func(e *historypb.HistoryEvent) bool {
			return e.EventType == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
		},
		"run after continue-as-new": func(e *historypb.HistoryEvent) bool {
			started := e.GetWorkflowExecutionStartedEventAttributes()
			return started != nil && started.ContinuedExecutionRunId != ""
		},
		"workflow completed": func(e *historypb.HistoryEvent) bool {
			return e.EventType == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
		},
	}
	seen := map[string]map[string]bool{}
	for _, file := range recorded(t) {
		release := filepath.Dir(file)
		if seen[release] == nil {
			seen[release] = map[string]bool{}
		}
		for _, event := range read(t, file).Events {
			for what, is := range rare {
				seen[release][what] = seen[release][what] || is(event)
			}
		}
	}
	for release, found := range seen {
		for what := range rare {
			assert.True(t, found[what], "%s has no history with: %s", release, what)
		}
	}
}
