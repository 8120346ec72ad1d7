package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// SaveHistories writes the histories of all runs of a workflow that has ended into a folder, NAME.1.json and so on. A file that
// exists stays: the histories of a release are only added, never rewritten.
func SaveHistories(ctx context.Context, temporal temporalclient.Client, id, folder, name string) error {
	runs, err := RunsOf(ctx, temporal, id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for i, run := range runs {
		if err := saveHistory(ctx, temporal, id, run, filepath.Join(folder, fmt.Sprintf("%s.%d.json", name, i+1))); err != nil {
			return fmt.Errorf("save the history of %s: %w", id, err)
		}
	}
	return nil
}

func saveHistory(ctx context.Context, temporal temporalclient.Client, id, run, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
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

// SaveSome writes the histories of up to limit runs of a workflow type, the oldest first, also of those that have not ended.
func SaveSome(ctx context.Context, temporal temporalclient.Client, workflowType, folder string, limit int) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowType = '%s'", workflowType)}
	var found [][2]string
	for {
		page, err := temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		for _, run := range page.Executions {
			found = append(found, [2]string{run.Execution.WorkflowId, run.Execution.RunId})
		}
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			break
		}
	}
	slices.Reverse(found)
	for i, run := range found[:min(limit, len(found))] {
		path := filepath.Join(folder, fmt.Sprintf("%s.%03d.json", workflowType, i+1))
		if err := saveHistory(ctx, temporal, run[0], run[1], path); err != nil {
			return fmt.Errorf("save the history of %s: %w", run[0], err)
		}
	}
	return nil
}
