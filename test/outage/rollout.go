package outage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/k8s/process/points"
	"holdfast.dev/holdfast/test/histories"
	"holdfast.dev/holdfast/test/tools"
)

// Rollout replaces a case's worker by one of another build while its workflows are open: both serve them side by side for a
// while, without worker versioning.
type Rollout struct {
	// To is the worker that stays.
	To string
	// Beside is when it starts, and Alone when the one of before is ended.
	Beside, Alone Moment
}

// String returns the rollout in words.
func (r Rollout) String() string {
	return fmt.Sprintf("beside the other one at %s, alone at %s", r.Beside, r.Alone)
}

// RolloutOf takes place amid the moments of an undisturbed run. It returns false if one worker can serve all that comes after it:
// then no signal and no regular activity follows, which need a workflow task of their own.
func RolloutOf(moments []Moment, to string) (Rollout, bool) {
	var local []int // where a worker can stand as long as the other one starts
	for i, m := range moments {
		if m.Form == points.Local && m.Occurrence <= Occurrences {
			local = append(local, i)
		}
	}
	needsTask := func(m Moment) bool { return m.Form != points.Local && !m.After }
	for alone := max(len(local)*2/3, 1); alone > 0 && alone < len(local); alone-- {
		if slices.ContainsFunc(moments[local[alone]:], needsTask) {
			beside := min(len(local)/3, alone-1)
			return Rollout{To: to, Beside: moments[local[beside]], Alone: moments[local[alone]]}, true
		}
	}
	return Rollout{}, false
}

// Plan tells the driver what to do, and returns how many ends of processes are to be awaited: the worker is asked to end, as
// Kubernetes does, and may finish what it is at.
func (r Rollout) Plan(s *Subjects) int {
	s.Driver.At(r.Beside, func() (err error) {
		s.Beside, err = s.newWorker("worker-beside", r.To)
		return err
	})
	s.Driver.At(r.Alone, func() error {
		go func() { s.restarted <- s.Worker.Stop() }()
		return nil
	})
	return 1
}

// BuildBaseline builds the worker and the watcher of the commit that the baseline of histories was recorded by.
func BuildBaseline(ctx context.Context) (map[string]string, error) {
	root, err := tools.Root()
	if err != nil {
		return nil, err
	}
	commit, err := os.ReadFile(filepath.Join(root, "test", "histories", histories.Baseline, histories.CommitFile))
	if err != nil {
		return nil, err
	}
	return tools.BuildHoldfastAt(ctx, os.Stdout, strings.TrimSpace(string(commit)), "outage")
}

// Served says how the workflows of a case were served.
type Served struct {
	// By counts the workflow tasks that each worker completed.
	By map[string]int
	// Failed are the workflow tasks that failed, but for completions that a signal forestalled.
	Failed []string
}

// Takeovers counts the cases of one test in which two workers completed workflow tasks. Not each case has two: a worker that is
// ended may complete all that is left before it ends.
type Takeovers struct{ cases, byTwo atomic.Int32 }

// Require notes how a case was served, and fails the test if a workflow task failed.
func (o *Takeovers) Require(t *testing.T, served Served) {
	t.Helper()
	assert.Empty(t, served.Failed, "workflow tasks that failed")
	assert.NotEmpty(t, served.By, "workflow tasks by worker")
	o.cases.Add(1)
	if len(served.By) == 2 {
		o.byTwo.Add(1)
	}
}

// RequireMost fails the test if fewer than half of the cases were served by two. It is called when all have ended.
func (o *Takeovers) RequireMost(t *testing.T) {
	t.Helper()
	assert.GreaterOrEqual(t, 2*o.byTwo.Load(), o.cases.Load(), "cases served by two workers, of %d", o.cases.Load())
}

// ServedSince reads the histories of the workflows that a visibility query finds, or of all if it is empty, begun since then.
func ServedSince(ctx context.Context, temporal temporalclient.Client, query string, since time.Time) (Served, error) {
	served := Served{By: map[string]int{}}
	list := &workflowservice.ListWorkflowExecutionsRequest{
		Query: strings.TrimPrefix(fmt.Sprintf("%s AND StartTime >= '%s'", query, since.UTC().Format(time.RFC3339)), " AND "),
	}
	for {
		page, err := temporal.ListWorkflow(ctx, list)
		if err != nil {
			return served, fmt.Errorf("list workflows: %w", err)
		}
		for _, run := range page.Executions {
			if err := served.add(ctx, temporal, run.Execution.WorkflowId, run.Execution.RunId); err != nil {
				return served, err
			}
		}
		if list.NextPageToken = page.NextPageToken; len(list.NextPageToken) == 0 {
			return served, nil
		}
	}
}

func (s *Served) add(ctx context.Context, temporal temporalclient.Client, id, run string) error {
	events := temporal.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return fmt.Errorf("read the history of %s: %w", id, err)
		}
		if completed := event.GetWorkflowTaskCompletedEventAttributes(); completed != nil {
			s.By[completed.Identity]++
		}
		failed := event.GetWorkflowTaskFailedEventAttributes()
		if failed != nil && failed.Cause != enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
			s.Failed = append(s.Failed, fmt.Sprintf("%s: %s: %s", id, failed.Cause, failed.GetFailure().GetMessage()))
		}
	}
	return nil
}
