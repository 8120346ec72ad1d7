package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
)

// visibilityTimeout is how long Temporal may take to list a workflow that has completed.
const visibilityTimeout = 90 * time.Second

// RunsOf lists the runs of a workflow that has ended, the oldest first, as soon as visibility shows its end.
func RunsOf(ctx context.Context, temporal temporalclient.Client, id string) ([]string, error) {
	var runs []string
	err := poll(ctx, visibilityTimeout, func() error {
		runs = nil
		answer, err := temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = '%s'", id),
		})
		if err != nil {
			return err
		}
		for i := len(answer.Executions) - 1; i >= 0; i-- {
			if answer.Executions[i].Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				return fmt.Errorf("workflow %s is running", id)
			}
			runs = append(runs, answer.Executions[i].Execution.RunId)
		}
		if len(runs) == 0 {
			return errors.New("workflow " + id + " is not listed")
		}
		return nil
	})
	return runs, err
}

// RecordHistories writes the history of every run in a Temporal namespace into the folder that HOLDFAST_RECORD_HISTORIES names,
// TYPE.RUN.json each, also of runs that have not ended. Without that variable it does nothing. `make histories` chooses from
// them.
func RecordHistories(ctx context.Context, temporal temporalclient.Client) error {
	folder := os.Getenv("HOLDFAST_RECORD_HISTORIES")
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000}
	for {
		page, err := temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		for _, run := range page.Executions {
			id := run.Execution
			path := filepath.Join(folder, fmt.Sprintf("%s.%s.json", run.Type.Name, id.RunId))
			if err := saveHistory(ctx, temporal, id.WorkflowId, id.RunId, path); err != nil {
				return fmt.Errorf("record the history of %s: %w", id.WorkflowId, err)
			}
		}
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

func saveHistory(ctx context.Context, temporal temporalclient.Client, id, run, path string) error {
	history := &historypb.History{}
	events := temporal.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		history.Events = append(history.Events, event)
	}
	data, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(history)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
