package container_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// guardStart is when the guard gets its first request.
var guardStart = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const guarded = "s3.local:443/fdb/lab"

// guardStep is an event for a guard, or around it, at a time after the start.
type guardStep struct {
	at      time.Duration
	request *contract.FDBContainerRequest
	do      func(*guardWorld)
}

// guardWorld runs the guard of a container, over as many runs as needed.
type guardWorld struct {
	mu     sync.Mutex
	start  time.Time
	dead   map[string]bool
	checks int
	roll   bool
	// answers are those to the steps with a request, by their place; heard is called with each.
	answers map[int]contract.FDBContainerAnswer
	refused map[int]error
	heard   func(at time.Duration, request contract.FDBContainerRequest, answer contract.FDBContainerAnswer)
	env     *testsuite.TestWorkflowEnvironment
	steps   []guardStep
	done    int
	runs    int
	endedAt time.Duration
}

func newGuardWorld() *guardWorld {
	return &guardWorld{
		start: guardStart, dead: map[string]bool{}, answers: map[int]contract.FDBContainerAnswer{}, refused: map[int]error{},
		heard: func(time.Duration, contract.FDBContainerRequest, contract.FDBContainerAnswer) {},
	}
}

func (w *guardWorld) describe(_ context.Context, holders contract.Workflows) (contract.Workflows, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks++
	var closed contract.Workflows
	for _, id := range holders.WorkflowIDs {
		if w.dead[id] {
			closed.WorkflowIDs = append(closed.WorkflowIDs, id)
		}
	}
	return closed, nil
}

// play runs the guard through the steps, which are in the order of their times. After it has ended the next request starts it again.
func (w *guardWorld) play(steps []guardStep) error {
	w.steps, w.done = steps, 0
	for w.done < len(w.steps) {
		if first := w.steps[w.done]; first.request == nil {
			first.do(w)
			w.roll = false // there is nothing to continue
			w.done++
			continue
		}
		in, at := &contract.FDBContainerInput{Container: guarded}, w.steps[w.done].at
		var err error
		for in != nil && err == nil {
			in, at, err = w.run(*in, at)
		}
		if err != nil {
			return err
		}
		w.endedAt = at
	}
	return nil
}

func (w *guardWorld) run(in contract.FDBContainerInput, from time.Duration) (*contract.FDBContainerInput, time.Duration, error) {
	if w.runs++; w.runs > 300 {
		return nil, 0, errors.New("the guard continues as new without end")
	}
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := environment.New(suite)
	env.SetStartTime(w.start.Add(from))
	workflows.Register(env, call.Options{})
	env.RegisterActivityWithOptions(w.describe, activity.RegisterOptions{Name: contract.DescribeWorkflows.Name})
	for at := w.done; at < len(w.steps); at++ {
		env.RegisterDelayedCallback(func() { w.step(env, at) }, max(w.steps[at].at-from, time.Millisecond))
	}
	over := false // an hour after the last step, if the guard is needed still
	env.RegisterDelayedCallback(func() {
		over = true
		env.CancelWorkflow()
	}, w.steps[len(w.steps)-1].at+time.Hour-from)
	if w.roll {
		w.roll = false
		env.SetContinueAsNewSuggested(true)
	}
	env.ExecuteWorkflow(contract.KindFDBContainer.Workflow, in)
	at, err := env.Now().Sub(w.start), env.GetWorkflowError()
	var again *workflow.ContinueAsNewError
	if errors.As(err, &again) {
		var next contract.FDBContainerInput
		return &next, at, workflowtest.Decode(again, &next)
	}
	if over && temporal.IsCanceledError(err) {
		return nil, at, nil
	}
	return nil, at, err
}

func (w *guardWorld) step(env *testsuite.TestWorkflowEnvironment, at int) {
	if at != w.done || env.IsWorkflowCompleted() {
		return // the next run has it
	}
	w.done++
	step := w.steps[at]
	if step.request == nil {
		w.env = env
		step.do(w)
		if w.roll {
			w.roll = false
			env.SetContinueAsNewSuggested(true)
		}
		return
	}
	env.UpdateWorkflow(contract.UpdateFDBContainer, fmt.Sprint(at), &testsuite.TestUpdateCallback{
		OnAccept: func() {},
		OnReject: func(err error) { w.refused[at] = err },
		OnComplete: func(result any, err error) {
			w.refused[at] = err
			if is, ok := result.(contract.FDBContainerAnswer); ok {
				w.answers[at] = is
				w.heard(env.Now().Sub(w.start), *step.request, is)
			}
		},
	}, *step.request)
}

// asked is a step with a request.
func asked(at time.Duration, who string, action contract.FDBContainerAction) guardStep {
	request := contract.FDBContainerRequest{
		Container: guarded, Action: action, User: contract.FDBContainerUser{
			WorkflowID: who, Name: "team/" + who, Cluster: "east", Namespace: "team",
		},
	}
	if action == contract.FDBContainerExpire || action == contract.FDBContainerDelete {
		request.Of = who
		request.User.WorkflowID = "turn-" + who
	}
	if action == contract.FDBContainerRelease {
		request.User.WorkflowID = "turn-" + who
	}
	return guardStep{at: at, request: &request}
}

func freshly(at time.Duration, who string) guardStep {
	step := asked(at, who, contract.FDBContainerUse)
	step.request.Fresh = true
	return step
}

// wholly is a step with a request to delete the data of an object that is being deleted.
func wholly(at time.Duration, who string) guardStep {
	step := asked(at, who, contract.FDBContainerDelete)
	step.request.Whole = true
	return step
}

// reads is a restore that reads for so long.
func reads(at time.Duration, who string, lasting time.Duration) guardStep {
	step := asked(at, who, contract.FDBContainerUse)
	step.request.User.ReadsUntil = guardStart.Add(at + lasting).Unix()
	return step
}

func around(at time.Duration, do func(*guardWorld)) guardStep { return guardStep{at: at, do: do} }

func guardRolls(at time.Duration) guardStep {
	return around(at, func(w *guardWorld) { w.roll = true })
}

func (w *guardWorld) plays(t *testing.T, steps ...guardStep) {
	t.Helper()
	require.NoError(t, w.play(steps))
	for at, step := range steps {
		if step.request != nil {
			require.Contains(t, w.refused, at, "step %d was never answered", at)
		}
	}
}
