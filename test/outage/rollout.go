package outage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/histories"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// Rollout replaces a case's worker by one of another build while its workflows are open, without worker versioning. The zero
// value takes place before a scenario begins.
type Rollout struct {
	// To is the worker that stays.
	To string
	// Beside is when it starts, and Alone when the one of before is ended: between them both serve side by side.
	Beside, Alone Moment
}

// String returns the rollout in words.
func (r Rollout) String() string {
	if r.early() {
		return "before the scenario begins"
	}
	return fmt.Sprintf("beside the other one at %s, alone at %s", r.Beside, r.Alone)
}

func (r Rollout) early() bool { return r.Beside.Occurrence == 0 }

// When a rollout takes place: then, or all of it at a moment of a scenario that is given in words.
const (
	Before = "before it"
	During = "during it"
)

// RolloutOf takes place then, by the moments of an undisturbed run. It returns false if there is no such moment, or if one worker
// can serve all that comes after it: then no signal and no regular activity follows, which need a workflow task of their own.
func RolloutOf(when string, moments []Moment) (Rollout, bool) {
	var local []int // where a worker can stand as long as the other one starts
	for i, m := range moments {
		if m.Form == failpoint.Local && m.Occurrence <= Occurrences {
			local = append(local, i)
		}
	}
	followed := func(at int) bool {
		return slices.ContainsFunc(moments[local[at]:], func(m Moment) bool { return m.Form != failpoint.Local && !m.After })
	}
	switch when {
	case Before:
		return Rollout{}, true
	case During:
		for alone := max(len(local)*2/3, 1); alone > 0 && alone < len(local); alone-- {
			if followed(alone) {
				beside := min(len(local)/3, alone-1)
				return Rollout{Beside: moments[local[beside]], Alone: moments[local[alone]]}, true
			}
		}
		return Rollout{}, false
	}
	at := slices.IndexFunc(local, func(i int) bool { return moments[i].String() == when })
	if at < 0 || !followed(at) {
		return Rollout{}, false
	}
	return Rollout{Beside: moments[local[at]], Alone: moments[local[at]]}, true
}

const (
	// stopping is what a worker logs when it has been asked to end.
	stopping     = "worker stopping"
	stopLines    = 50
	stopPatience = time.Minute
	pollEvery    = 10 * time.Millisecond
	// missedInSample is how many workflow types of a sample one worker may serve alone: most have one run to be handed over there,
	// and a poll that is in flight when a worker is asked to end may still bring it that run's last task.
	missedInSample = 1
)

// Plan tells the driver what to do, and returns how many ends of processes are to be awaited: the worker is asked to end, as
// Kubernetes does, and may finish what it is at. What stands at the moment goes on when the worker has said that it stops. The
// other one has started by then: a moment that is a repetition (Beside) need not come.
func (r Rollout) Plan(s *Subjects) int {
	begin := sync.OnceValue(func() error { return s.startBeside(r.To) })
	if r.early() {
		s.restarted <- inOrder(begin, s.Worker.Stop)
		return 1
	}
	s.Driver.At(r.Beside, begin)
	s.Driver.At(r.Alone, func() error { return inOrder(begin, s.endWorker) })
	return 1
}

// Replace does so now, also while activities of the worker stand at a point. AwaitRestarts awaits one end.
func (r Rollout) Replace(s *Subjects) error {
	return inOrder(func() error { return s.startBeside(r.To) }, s.endWorker)
}

// inOrder takes one step after the other, up to one that fails: a worker must not end if the one beside it has not begun.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Subjects) startBeside(binary string) (err error) {
	s.Beside, err = s.newWorker("worker-beside", binary)
	return err
}

// endWorker asks the worker to end, and returns when it has said that it stops.
func (s *Subjects) endWorker() error {
	go func() { s.restarted <- s.Worker.Stop() }()
	for deadline := time.Now().Add(stopPatience); !strings.Contains(s.Worker.LogTail(stopLines), stopping); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s has not logged %q", s.Worker.Name(), stopping)
		}
	}
	return nil
}

// RolloutsAreDue reports whether every run of the tests has rollouts: the workflows, or the baseline of their histories, have
// changed since what has landed. The gate says so.
func RolloutsAreDue() bool { return os.Getenv("HOLDFAST_TEST_ROLLOUTS") == "1" }

// Rollouts are those of one test: forward is from the commit that the baseline of histories was recorded by to this code, back is
// the other way.
type Rollouts struct {
	// baseline are the programs of that commit.
	baseline map[string]string
	// types are the workflow types that two builds must have served.
	types []string

	mutex sync.Mutex
	// byTwo counts the cases in which two workers completed workflow tasks. Not each has two: a worker that is ended may complete
	// all that is left before it ends.
	cases, byTwo int
	// runs and handed count the runs of each workflow type: those that a worker served, and those that both did.
	runs, handed map[string]int
}

// NewRollouts builds that commit's worker and watcher; in a shallow clone without the commit the test is skipped. When the test
// has ended, two workers must have served at least half of its cases, and, if all of them have run, of each of these workflow
// types a run that one build began and the other continued; in a sample of all but one.
func NewRollouts(t *testing.T, types []string) *Rollouts {
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
	o := &Rollouts{baseline: baseline, types: types, runs: map[string]int{}, handed: map[string]int{}}
	t.Cleanup(func() {
		if !t.Skipped() && !t.Failed() {
			o.requireAll(t)
		}
	})
	return o
}

func (o *Rollouts) requireAll(t *testing.T) {
	t.Helper()
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(o.runs)) {
		fmt.Fprintf(&table, "\n%-30s%5d runs, %4d served by two builds", name, o.runs[name], o.handed[name])
	}
	t.Logf("%d cases, %d served by two workers%s", o.cases, o.byTwo, table.String())
	require.NotZero(t, o.cases, "cases")
	if someChosen() {
		return
	}
	assert.GreaterOrEqual(t, 2*o.byTwo, o.cases, "cases served by two workers, of %d", o.cases)
	var kept []string
	for _, name := range o.types {
		if o.handed[name] == 0 {
			kept = append(kept, fmt.Sprintf("%s (%d runs)", name, o.runs[name]))
		}
	}
	missed := 0
	if !sample.Whole() {
		missed = missedInSample
	}
	assert.LessOrEqual(t, len(kept), missed, "of these no run was begun by one build and continued by the other: %v", kept)
}

// someChosen reports whether the command line chooses some of a test's cases.
func someChosen() bool {
	value := func(name string) string { return flag.Lookup(name).Value.String() }
	return strings.Contains(value("test.run"), "/") || value("test.skip") != ""
}

// Run is one rollout of a case: from the programs that it gives to the case, to the others.
type Run func(t *testing.T, rollout Rollout, from map[string]string)

// Run runs a case by the moments of an undisturbed run, once for each time that is named; during it, if none is, and in the whole
// matrix. See RunAt.
func (o *Rollouts) Run(t *testing.T, when []string, moments []Moment, programs map[string]string, back bool, run Run) {
	t.Helper()
	if len(when) == 0 || sample.Whole() {
		when = append([]string{During}, when...)
	}
	for _, when := range when {
		t.Run(when, func(t *testing.T) {
			rollout, is := RolloutOf(when, moments)
			if !is && when == During {
				t.Skipf("one worker can serve all that happens: %v", moments)
			}
			require.True(t, is, "not in an undisturbed run, or one worker can serve all that follows: %v", moments)
			o.RunAt(t, rollout, programs, back, run)
		})
	}
}

// RunAt runs a case forward to these programs, and back if asked for: that is safe as long as this code adds no commands, but for
// what the policy has to ask for.
func (o *Rollouts) RunAt(t *testing.T, rollout Rollout, programs map[string]string, back bool, run Run) {
	t.Helper()
	direction := func(name string, from, to map[string]string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rollout := rollout
			rollout.To = to[tools.HoldfastWorker]
			run(t, rollout, from)
		})
	}
	direction("forward", o.baseline, programs)
	if back && !workflows.AddsByDefault {
		direction("back", programs, o.baseline)
	}
}

// RequireServed requires that no workflow task of a case failed. The case's workflows are those that a visibility query finds, or
// all if it is empty, begun since then.
func (o *Rollouts) RequireServed(t *testing.T, temporal temporalclient.Client, query string, since time.Time) {
	t.Helper()
	served, err := servedSince(context.Background(), temporal, query, since)
	require.NoError(t, err)
	assert.Empty(t, served.failed, "workflow tasks that failed")
	assert.NotEmpty(t, served.by, "workflow tasks by worker")
	t.Logf("workflow tasks by worker: %v; runs that two served: %v, of %v", served.by, served.handed, served.runs)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.cases++
	if len(served.by) > 1 {
		o.byTwo++
	}
	for name, count := range served.runs {
		o.runs[name] += count
		o.handed[name] += served.handed[name]
	}
}

// served says how the workflows of a case were served.
type served struct {
	// by counts the workflow tasks that each worker completed.
	by map[string]int
	// runs and handed count, by workflow type, the runs of which a worker completed tasks, and those of which two did.
	runs, handed map[string]int
	// failed are the workflow tasks that failed, but for completions that a signal forestalled.
	failed []string
}

func servedSince(ctx context.Context, temporal temporalclient.Client, query string, since time.Time) (served, error) {
	found := served{by: map[string]int{}, runs: map[string]int{}, handed: map[string]int{}}
	list := &workflowservice.ListWorkflowExecutionsRequest{
		Query: strings.TrimPrefix(fmt.Sprintf("%s AND StartTime >= '%s'", query, since.UTC().Format(time.RFC3339)), " AND "),
	}
	for {
		page, err := temporal.ListWorkflow(ctx, list)
		if err != nil {
			return found, fmt.Errorf("list workflows: %w", err)
		}
		for _, run := range page.Executions {
			if histories.Newer[run.Type.Name] {
				continue // the older build leaves its tasks to the newer one
			}
			if err := found.add(ctx, temporal, run); err != nil {
				return found, err
			}
		}
		if list.NextPageToken = page.NextPageToken; len(list.NextPageToken) == 0 {
			return found, nil
		}
	}
}

func (s *served) add(ctx context.Context, temporal temporalclient.Client, run *workflowpb.WorkflowExecutionInfo) error {
	id, workers := run.Execution.WorkflowId, map[string]bool{}
	events := temporal.GetWorkflowHistory(ctx, id, run.Execution.RunId, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return fmt.Errorf("read the history of %s: %w", id, err)
		}
		if completed := event.GetWorkflowTaskCompletedEventAttributes(); completed != nil {
			s.by[completed.Identity]++
			workers[completed.Identity] = true
		}
		failed := event.GetWorkflowTaskFailedEventAttributes()
		if failed != nil && failed.Cause != enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
			s.failed = append(s.failed, fmt.Sprintf("%s: %s: %s", id, failed.Cause, failed.GetFailure().GetMessage()))
		}
	}
	if len(workers) > 0 {
		s.runs[run.Type.Name]++
	}
	if len(workers) > 1 {
		s.handed[run.Type.Name]++
	}
	return nil
}
