package outage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/k8s/process/points"
	"holdfast.dev/holdfast/test/histories"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows"
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

// Rollouts are those of one test: forward is from the commit that the baseline of histories was recorded by to this code, back is
// the other way.
type Rollouts struct {
	// baseline are the programs of that commit.
	baseline map[string]string
	// byTwo counts the cases in which two workers completed workflow tasks. Not each has two: a worker that is ended may complete
	// all that is left before it ends.
	cases, byTwo atomic.Int32
}

// NewRollouts builds that commit's worker and watcher; in a shallow clone without the commit the test is skipped. When the test
// has ended, two workers must have served at least half of its cases.
func NewRollouts(t *testing.T) *Rollouts {
	t.Helper()
	root, err := tools.Root()
	require.NoError(t, err)
	commit, err := os.ReadFile(filepath.Join(root, "test", "histories", histories.Baseline, histories.CommitFile))
	require.NoError(t, err)
	baseline, err := tools.BuildHoldfastAt(t.Context(), os.Stdout, strings.TrimSpace(string(commit)), "outage")
	if errors.Is(err, tools.ErrShallow) {
		t.Skip(err)
	}
	require.NoError(t, err)
	o := &Rollouts{baseline: baseline}
	t.Cleanup(func() {
		if !t.Skipped() && !t.Failed() {
			require.NotZero(t, o.cases.Load(), "cases")
			assert.GreaterOrEqual(t, 2*o.byTwo.Load(), o.cases.Load(), "cases served by two workers, of %d", o.cases.Load())
		}
	})
	return o
}

// Run runs a case forward to these programs, and back if asked for: that is safe as long as this code adds no commands. The case
// is given the programs to begin with.
func (o *Rollouts) Run(
	t *testing.T, moments []Moment, programs map[string]string, back bool, run func(*testing.T, Rollout, map[string]string),
) {
	t.Helper()
	o.direction(t, "forward", moments, o.baseline, programs, run)
	if back && workflows.AddsCommands == "" {
		o.direction(t, "back", moments, programs, o.baseline, run)
	}
}

func (o *Rollouts) direction(
	t *testing.T, name string, moments []Moment, from, to map[string]string, run func(*testing.T, Rollout, map[string]string),
) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		rollout, is := RolloutOf(moments, to[tools.HoldfastWorker])
		if !is {
			t.Skipf("one worker can serve all that happens: %v", moments)
		}
		run(t, rollout, from)
	})
}

// RequireServed requires that no workflow task of a case failed. The case's workflows are those that a visibility query finds, or
// all if it is empty, begun since then.
func (o *Rollouts) RequireServed(t *testing.T, temporal temporalclient.Client, query string, since time.Time) {
	t.Helper()
	served, err := servedSince(context.Background(), temporal, query, since)
	require.NoError(t, err)
	assert.Empty(t, served.failed, "workflow tasks that failed")
	assert.NotEmpty(t, served.by, "workflow tasks by worker")
	t.Logf("workflow tasks by worker: %v", served.by)
	o.cases.Add(1)
	if len(served.by) == 2 {
		o.byTwo.Add(1)
	}
}

// served says how the workflows of a case were served.
type served struct {
	// by counts the workflow tasks that each worker completed.
	by map[string]int
	// failed are the workflow tasks that failed, but for completions that a signal forestalled.
	failed []string
}

func servedSince(ctx context.Context, temporal temporalclient.Client, query string, since time.Time) (served, error) {
	found := served{by: map[string]int{}}
	list := &workflowservice.ListWorkflowExecutionsRequest{
		Query: strings.TrimPrefix(fmt.Sprintf("%s AND StartTime >= '%s'", query, since.UTC().Format(time.RFC3339)), " AND "),
	}
	for {
		page, err := temporal.ListWorkflow(ctx, list)
		if err != nil {
			return found, fmt.Errorf("list workflows: %w", err)
		}
		for _, run := range page.Executions {
			if err := found.add(ctx, temporal, run.Execution.WorkflowId, run.Execution.RunId); err != nil {
				return found, err
			}
		}
		if list.NextPageToken = page.NextPageToken; len(list.NextPageToken) == 0 {
			return found, nil
		}
	}
}

func (s *served) add(ctx context.Context, temporal temporalclient.Client, id, run string) error {
	events := temporal.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return fmt.Errorf("read the history of %s: %w", id, err)
		}
		if completed := event.GetWorkflowTaskCompletedEventAttributes(); completed != nil {
			s.by[completed.Identity]++
		}
		failed := event.GetWorkflowTaskFailedEventAttributes()
		if failed != nil && failed.Cause != enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
			s.failed = append(s.failed, fmt.Sprintf("%s: %s: %s", id, failed.Cause, failed.GetFailure().GetMessage()))
		}
	}
	return nil
}
