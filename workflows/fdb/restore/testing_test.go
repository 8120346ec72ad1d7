package restore_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	fdbrestore "holdfast.dev/holdfast/workflows/fdb/restore"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

const (
	restoredURL  = "blobstore://lab@s3.local/lab?bucket=b"
	restoredFrom = "s3.local/b/lab"
)

// restoreWorld is one FoundationDBRestore, its destination, and those that its workflow talks to. It outlives runs of the workflow.
type restoreWorld struct {
	mu   sync.Mutex
	view contract.FDBRestoreView
	// seen is what the destination reports; silent: it does not answer.
	seen    contract.FDBRestoreInspection
	silent  bool
	busy    string
	opposed []string
	failing map[contract.FDBOperation]*contract.FDBOutcome
	// lost: a start has its effect, and its outcome is unknown.
	lost bool
	// tasks are errors by the task's name; notYet: all wait.
	tasks  map[string][]string
	notYet bool
	// log is what was done, in its order; observe, inspect and publish only with their times.
	log      []string
	at       map[string][]time.Time
	requests []contract.FDBCommandRequest
	findings contract.FDBRestoreFindings
	released *contract.FDBRestoreRelease
	// limits are how long the last attempt might have taken.
	limits map[string]time.Duration
	now    func() time.Time
	// on is called at the beginning of every activity.
	on func(name string)
}

func newRestoreWorld() *restoreWorld {
	return &restoreWorld{
		view: contract.FDBRestoreView{
			Found: true, Held: true, Generation: 1, Owner: workflowtest.Lab, Tag: "lab-u", URL: restoredURL, Container: restoredFrom,
		},
		seen: contract.FDBRestoreInspection{
			LockKnown: true, Agents: 3, Point: &contract.FDBPoint{Version: 700}, URL: restoredURL,
		},
		failing: map[contract.FDBOperation]*contract.FDBOutcome{}, tasks: map[string][]string{}, at: map[string][]time.Time{},
		limits: map[string]time.Duration{},
		on:     func(string) {},
	}
}

// midRestore returns a world whose restore runs.
func midRestore() *restoreWorld {
	w := newRestoreWorld()
	w.view.Plan = &contract.FDBRestorePlan{
		Tag: "lab-u", URL: restoredURL, Container: restoredFrom, Version: 700, Destination: workflowtest.Lab,
	}
	w.view.State, w.view.Observed = fdbrestore.StateRunning, true
	w.enter(fdbrestore.StateRunning)
	return w
}

// enter puts the restore into a state in the destination.
func (w *restoreWorld) enter(state string) {
	w.seen.Restore = &contract.FDBRestoreProgress{Tag: "lab-u", UID: "1", State: state, Blocks: 4, BlocksDone: 1}
	w.seen.LockUID = "1"
	if fdbrestore.Ended(state) {
		w.seen.LockUID = ""
	}
}

// change changes the world while nothing of the workflow runs.
func (w *restoreWorld) change(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *restoreWorld) stop() {
	w.view.Stop, w.view.Observed, w.view.Generation = true, false, w.view.Generation+1
}

func (w *restoreWorld) begin(name string) func() {
	w.mu.Lock()
	w.at[name] = append(w.at[name], w.now())
	w.on(name)
	return w.mu.Unlock
}

func (w *restoreWorld) did(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *restoreWorld) times(step string) (found int) {
	for _, done := range w.log {
		if done == step {
			found++
		}
	}
	return found
}

func (w *restoreWorld) reason() string {
	if len(w.findings.Conditions) == 0 {
		return ""
	}
	return w.findings.Conditions[0].Reason
}

// restoreRun is one run of the workflow.
type restoreRun struct {
	*testsuite.TestWorkflowEnvironment
	*restoreWorld
	start time.Time
}

func (w *restoreWorld) run() *restoreRun {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r := &restoreRun{TestWorkflowEnvironment: environment.New(suite), restoreWorld: w}
	r.start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	w.now = r.Now
	r.SetStartTime(r.start)
	workflows.Register(r, call.Options{})
	add := func(name string, do any) { r.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name}) }
	add(contract.ObserveFDBRestore.Name, func(context.Context, contract.ObjectStep) (contract.FDBRestoreView, error) {
		defer w.begin("observe")()
		return w.view, nil
	})
	add(contract.PlanFDBRestore.Name, func(_ context.Context, p contract.FDBRestorePlanning) (contract.FDBRestoreView, error) {
		defer w.begin("plan")()
		w.did("plan %d", p.Plan.Version)
		if w.view.Plan == nil {
			w.view.Plan = &p.Plan
		}
		return w.view, nil
	})
	add(contract.PublishFDBRestore.Name, func(_ context.Context, f contract.FDBRestoreFindings) (contract.FDBRestoreView, error) {
		defer w.begin("publish")()
		w.findings = f
		w.view.State, w.view.Finalized, w.view.Observed = f.State, f.Finalized, f.Generation == w.view.Generation
		return w.view, nil
	})
	add(contract.ReleaseFDBRestore.Name, func(_ context.Context, release contract.FDBRestoreRelease) (contract.FDBRestoreView, error) {
		defer w.begin("release")()
		w.did("release")
		w.released, w.view = &release, contract.FDBRestoreView{}
		return w.view, nil
	})
	add(contract.InspectFDBRestore.Name, w.inspect)
	add(contract.RequestFDBCommand.Name, w.request)
	add(contract.RequestFDBContainer.Name, w.guard)
	add(contract.FinalizeFDBRestore.Name, func(_ context.Context, step contract.FDBRestoreTaskStep) (contract.FinalizationOutcome, error) {
		defer w.begin("task")()
		w.did("task %s", step.Task)
		if w.notYet {
			return contract.FinalizationOutcome{}, temporal.NewApplicationError("waits", contract.ErrorNotYet)
		}
		return contract.FinalizationOutcome{Errors: contract.FinalizationLines{Cluster: w.tasks[step.Task]}}, nil
	})
	return r
}

func (w *restoreWorld) inspect(ctx context.Context, in contract.FDBRestoreInspect) (contract.FDBRestoreInspection, error) {
	name := "inspect"
	if in.Resolve {
		name = "resolve"
	}
	defer w.begin(name)()
	w.limits[name] = activity.GetInfo(ctx).StartToCloseTimeout
	if w.silent {
		return contract.FDBRestoreInspection{Failure: &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "no answer"}}, nil
	}
	seen := w.seen
	if !in.Resolve {
		seen.NotEmpty, seen.Point, seen.Unresolved = "", nil, nil
	}
	return seen, nil
}

func (w *restoreWorld) request(ctx context.Context, request contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	defer w.begin("owner")()
	w.requests = append(w.requests, request)
	if request.Command == nil {
		verb := "join"
		if request.Leave {
			verb = "leave"
		}
		w.did("%s %s", verb, request.Cluster)
		return contract.FDBCommandAnswer{Opposed: w.opposed}, nil
	}
	w.did("%s %s", request.Command.Operation, request.Command.Tag)
	w.limits[string(request.Command.Operation)] = activity.GetInfo(ctx).StartToCloseTimeout
	if outcome := w.failing[request.Command.Operation]; outcome != nil {
		return contract.FDBCommandAnswer{Outcome: outcome}, nil
	}
	if request.Command.Operation == contract.FDBRestoreAbort {
		w.enter(fdbrestore.StateAborted)
		return contract.FDBCommandAnswer{Outcome: &contract.FDBOutcome{Done: true}}, nil
	}
	w.enter(fdbrestore.StateQueued)
	if w.lost {
		return contract.FDBCommandAnswer{Outcome: &contract.FDBOutcome{Failure: &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "cut"}}}, nil
	}
	return contract.FDBCommandAnswer{Outcome: &contract.FDBOutcome{Done: true}}, nil
}

func (w *restoreWorld) guard(_ context.Context, request contract.FDBContainerRequest) (contract.FDBContainerAnswer, error) {
	defer w.begin("guard")()
	w.did("%s %s", request.Action, request.Container)
	return contract.FDBContainerAnswer{Busy: w.busy}, nil
}

func (r *restoreRun) signal() {
	r.SignalWorkflow(contract.SignalChanged, contract.Changed{Reason: "changed"})
}

// After changes the world that long after the start, and signals the workflow.
func (r *restoreRun) After(delay time.Duration, do func()) {
	r.RegisterDelayedCallback(func() {
		r.change(do)
		r.signal()
	}, delay)
}

// serve runs the workflow until it ends, or until that long after its start, when it goes on in another run. It returns that run's
// input, nil if it has ended.
func (r *restoreRun) serve(t *testing.T, in contract.FDBRestoreInput, limit time.Duration) *contract.FDBRestoreInput {
	t.Helper()
	in.Cluster, in.Ref = "west", contract.ObjectRef{Namespace: "team", Name: "lab", UID: "u"}
	r.RegisterDelayedCallback(func() {
		r.SetContinueAsNewSuggested(true)
		r.signal()
	}, limit)
	r.ExecuteWorkflow(contract.KindFDBRestore.Workflow, in)
	require.True(t, r.IsWorkflowCompleted())
	err := r.GetWorkflowError()
	if err == nil {
		return nil
	}
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	carried := &contract.FDBRestoreInput{}
	require.NoError(t, workflowtest.Decode(next, carried))
	return carried
}

func (w *restoreWorld) happened(step string) bool { return slices.Contains(w.log, step) }
