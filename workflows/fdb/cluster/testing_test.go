package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// owned is an owner of a FoundationDB cluster among backups whose workflows run unless a test says otherwise.
type owned struct {
	*testsuite.TestWorkflowEnvironment
	mu    sync.Mutex
	start time.Time
	// commands are "second operation tag" in the order and at the time of their ends.
	commands  []string
	dead      map[string]bool
	checks    []int    // when it was checked which workflows run
	signalled []string // "second backup"
	updates   int
}

// answered is an answer, with the second when it came.
type answered struct {
	contract.FDBCommandAnswer
	err  error
	at   int
	done bool
}

func newOwned() *owned {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	o := &owned{
		TestWorkflowEnvironment: environment.New(suite), start: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
		dead: map[string]bool{},
	}
	o.SetStartTime(o.start)
	workflows.Register(o, call.Options{})
	o.RegisterActivityWithOptions(o.command, activity.RegisterOptions{Name: contract.RunFDBCommand.Name})
	o.RegisterActivityWithOptions(o.command, activity.RegisterOptions{Name: contract.RunFDBRestoreCommand.Name})
	o.RegisterActivityWithOptions(o.describe, activity.RegisterOptions{Name: contract.DescribeWorkflows.Name})
	o.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", contract.SignalChanged, contract.Changed{Reason: "agents"}).
		Return(func(_, id, _, _ string, _ any) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.dead[id] {
				return &temporal.UnknownExternalWorkflowExecutionError{}
			}
			o.signalled = append(o.signalled, fmt.Sprintf("%d %s", o.second(), id))
			return nil
		})
	return o
}

func (o *owned) second() int { return int(o.Now().Sub(o.start) / time.Second) }

func (o *owned) command(_ context.Context, command contract.FDBCommand) (contract.FDBOutcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commands = append(o.commands, fmt.Sprintf("%d %s %s", o.second(), command.Operation, command.Tag))
	return contract.FDBOutcome{Done: true}, nil
}

// lasting sets how long every command takes.
func (o *owned) lasting(duration time.Duration) {
	o.OnActivity(contract.RunFDBCommand.Name, mock.Anything, mock.Anything).Return(o.command).After(duration)
}

func (o *owned) describe(_ context.Context, holders contract.Workflows) (contract.Workflows, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checks = append(o.checks, o.second())
	var closed contract.Workflows
	for _, id := range holders.WorkflowIDs {
		if o.dead[id] {
			closed.WorkflowIDs = append(closed.WorkflowIDs, id)
		}
	}
	return closed, nil
}

// at calls do that many seconds after the start.
func (o *owned) at(second int, do func()) {
	o.RegisterDelayedCallback(do, time.Duration(second)*time.Second+time.Millisecond)
}

// asks sends a backup's request that many seconds after the start, and returns what will be the answer.
func (o *owned) asks(second int, backup string, request contract.FDBCommandRequest) *answered {
	answer := &answered{}
	if request.Cluster == "" {
		request.Cluster = workflowtest.Lab
	}
	request.Member.WorkflowID, request.Member.Name = backup, "team/"+backup
	if request.Command != nil {
		request.Queue = contract.FDBTaskQueue("west")
		if request.Until == 0 {
			request.Until = o.start.Add(time.Duration(second)*time.Second + contract.FDBRequestWait).Unix()
		}
		if request.Command.Tag == "" {
			request.Command.Tag = backup
		}
	}
	o.updates++
	id := fmt.Sprintf("%s/%d", backup, o.updates)
	o.at(second, func() {
		o.UpdateWorkflow(contract.UpdateFDBCluster, id, &testsuite.TestUpdateCallback{
			OnAccept: func() {},
			OnReject: func(err error) { answer.err = err },
			OnComplete: func(result any, err error) {
				answer.done, answer.err, answer.at = true, err, o.second()
				if is, ok := result.(contract.FDBCommandAnswer); ok {
					answer.FDBCommandAnswer = is
				}
			},
		}, request)
	})
	return answer
}

func running() contract.FDBCommandRequest { return contract.FDBCommandRequest{} }

func pausing() contract.FDBCommandRequest {
	return contract.FDBCommandRequest{Member: contract.FDBMember{Paused: true}}
}

func leaving() contract.FDBCommandRequest { return contract.FDBCommandRequest{Leave: true} }

func with(request contract.FDBCommandRequest, operation contract.FDBOperation) contract.FDBCommandRequest {
	request.Command = &contract.FDBCommand{Operation: operation}
	return request
}

// run runs the owner until it ends by itself, which it does ten minutes after the last one has left.
func (o *owned) run(t *testing.T) {
	t.Helper()
	o.ExecuteWorkflow(contract.KindFDBCluster.Workflow, contract.FDBClusterInput{Cluster: workflowtest.Lab})
	require.True(t, o.IsWorkflowCompleted())
	require.NoError(t, o.GetWorkflowError())
}
