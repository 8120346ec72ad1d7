package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// throttleStep is an event for a throttle or its members, at a time after the start.
type throttleStep struct {
	at time.Duration
	do func(*throttleWorld)
	// action and backup are a signal, which starts the throttle if it does not run.
	action contract.FDBSlotAction
	backup string
}

func asks(at time.Duration, backup string) throttleStep {
	return throttleStep{at: at, action: contract.FDBSlotAcquire, backup: backup}
}

func counts(at time.Duration, backup string) throttleStep {
	return throttleStep{at: at, action: contract.FDBSlotCount, backup: backup}
}

func releases(at time.Duration, backup string) throttleStep {
	return throttleStep{at: at, action: contract.FDBSlotRelease, backup: backup}
}

func happens(at time.Duration, do func(*throttleWorld)) throttleStep {
	return throttleStep{at: at, do: do}
}

func dies(at time.Duration, backup string) throttleStep {
	return happens(at, func(w *throttleWorld) { w.die(backup) })
}

func comesBack(at time.Duration, backup string) throttleStep {
	return happens(at, func(w *throttleWorld) { w.comeBack(backup) })
}

func setsLimit(at time.Duration, limit int) throttleStep {
	return happens(at, func(w *throttleWorld) { w.limit = limit })
}

func continuesAsNew(at time.Duration) throttleStep {
	return happens(at, func(w *throttleWorld) { w.roll = true })
}

// throttleWorld runs a throttle, over as many runs as needed, among backups whose workflows run unless a test says otherwise.
type throttleWorld struct {
	mu      sync.Mutex
	start   time.Time
	limit   int
	before  []string // in their first snapshot when the throttle began
	dead    map[string]bool
	mute    map[string]bool // cannot be signalled, for a cause unknown
	awayErr error           // the error of the check which workflows run
	roll    bool
	granted func(backup string)
	// unheard is called when a grant finds no workflow.
	unheard func(backup string)
	// send are signals that a step sends.
	send []contract.FDBSlotRequest
	// grants are "at backup" in their order, seconds from the start.
	grants []string
	runs   int
	steps  []throttleStep // that are to come
	ended  bool
	env    *testsuite.TestWorkflowEnvironment
}

func newThrottleWorld() *throttleWorld {
	return &throttleWorld{
		start: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), limit: 1, dead: map[string]bool{}, mute: map[string]bool{},
		ended: true, granted: func(string) {}, unheard: func(string) {},
	}
}

func (w *throttleWorld) die(backup string)      { w.dead[backup] = true }
func (w *throttleWorld) comeBack(backup string) { delete(w.dead, backup) }

// play runs the throttle through the steps, which are in the order of their times. After it has ended the next signal starts it again.
func (w *throttleWorld) play(steps []throttleStep) error {
	w.steps = steps
	for len(w.steps) > 0 {
		if first := w.steps[0]; first.action == "" {
			first.do(w)
			w.roll = false // there is nothing to continue
			w.steps = w.steps[1:]
			continue
		}
		next, at, err := w.run(contract.FDBThrottleInput{Cluster: "west"}, w.steps[0].at)
		for err == nil && next != nil {
			next, at, err = w.run(*next, at)
		}
		if err != nil {
			return err
		}
		w.ended = true
	}
	return nil
}

// run runs the throttle once from then on, and returns the next run's input and when it ended.
func (w *throttleWorld) run(in contract.FDBThrottleInput, from time.Duration) (*contract.FDBThrottleInput, time.Duration, error) {
	w.runs++
	w.ended = false
	if w.runs > 200 {
		return nil, 0, errors.New("the throttle continues as new without end")
	}
	env := w.newEnv()
	env.SetStartTime(w.start.Add(from))
	for _, step := range w.steps {
		env.RegisterDelayedCallback(func() { w.step(env, step) }, step.at-from)
	}
	env.ExecuteWorkflow(contract.KindFDBThrottle.Workflow, in)
	at := env.Now().Sub(w.start)
	err := env.GetWorkflowError()
	var again *workflow.ContinueAsNewError
	if errors.As(err, &again) {
		var next contract.FDBThrottleInput
		return &next, at, workflowtest.Decode(again, &next)
	}
	return nil, at, err
}

func (w *throttleWorld) newEnv() *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := environment.New(suite)
	workflows.Register(env, call.Options{})
	env.RegisterActivityWithOptions(w.describe, activity.RegisterOptions{Name: contract.DescribeWorkflows.Name})
	env.RegisterActivityWithOptions(w.find, activity.RegisterOptions{Name: contract.FindFirstSnapshots.Name})
	env.OnMutableSideEffect(mock.Anything).Return(func(string) any {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.limit
	})
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", contract.SignalSlotGranted, mock.Anything).
		Return(func(_, backup, _, _ string, _ any) error { return w.grant(backup) })
	w.env = env
	return env
}

func (w *throttleWorld) step(env *testsuite.TestWorkflowEnvironment, step throttleStep) {
	if env.IsWorkflowCompleted() {
		return
	}
	w.steps = w.steps[1:]
	if step.action != "" {
		env.SignalWorkflow(contract.SignalSlot, contract.FDBSlotRequest{
			Cluster: "west", WorkflowID: step.backup, Namespace: workflowtest.TeamOf(step.backup), Action: step.action,
		})
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	step.do(w)
	if w.roll {
		w.roll = false
		env.SetContinueAsNewSuggested(true)
	}
	for _, request := range w.send {
		env.SignalWorkflow(contract.SignalSlot, request)
	}
	w.send = nil
}

func (w *throttleWorld) describe(_ context.Context, holders contract.Workflows) (contract.Workflows, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var closed contract.Workflows
	for _, id := range holders.WorkflowIDs {
		if w.dead[id] {
			closed.WorkflowIDs = append(closed.WorkflowIDs, id)
		}
	}
	return closed, w.awayErr
}

// find returns the backups that were in their first snapshot when the throttle began.
func (w *throttleWorld) find(context.Context, contract.FDBThrottleInput) (contract.FDBHolders, error) {
	return contract.FDBHolders{WorkflowIDs: w.before}, nil
}

func (w *throttleWorld) grant(backup string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.dead[backup]:
		w.unheard(backup)
		return &temporal.UnknownExternalWorkflowExecutionError{}
	case w.mute[backup]:
		return errors.New("too many signals")
	}
	w.grants = append(w.grants, fmt.Sprintf("%d %s", int(w.now()/time.Second), backup))
	w.granted(backup)
	return nil
}

func (w *throttleWorld) now() time.Duration { return w.env.Now().Sub(w.start) }
