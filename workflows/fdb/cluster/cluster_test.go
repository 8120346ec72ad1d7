package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

func TestCommandsRunOneAtATimeInTheOrderOfRequests(t *testing.T) {
	o := newOwned()
	o.lasting(30 * time.Second)
	first := o.asks(0, "a", with(running(), contract.FDBStart))
	second := o.asks(1, "b", with(running(), contract.FDBStart))
	third := o.asks(2, "c", with(running(), contract.FDBModify))
	fourth := o.asks(3, "a", with(leaving(), contract.FDBAbort))
	commandless := o.asks(4, "d", leaving())
	o.asks(200, "b", leaving())
	o.asks(201, "c", leaving())
	o.run(t)
	assert.Equal(t, []string{"30 start a", "60 start b", "90 modify c", "120 abort a"}, o.commands)
	for seconds, answer := range map[int]*answered{30: first, 60: second, 90: third, 120: fourth} {
		require.NoError(t, answer.err)
		assert.Equal(t, &contract.FDBOutcome{Done: true}, answer.Outcome)
		assert.False(t, answer.Later)
		assert.Equal(t, seconds, answer.at)
	}
	assert.Equal(t, &answered{at: 4, done: true}, commandless, "what needs no command is answered at once")
	assert.Equal(t, 801, o.second(), "it ends ten minutes after the last request")
}

func TestACommandIsNotBegunWhenItsRequesterHasGivenUp(t *testing.T) {
	o := newOwned()
	o.lasting(100 * time.Second)
	o.asks(0, "a", with(running(), contract.FDBStart))
	late := with(running(), contract.FDBStart)
	late.Until = o.start.Add(50 * time.Second).Unix()
	answer := o.asks(1, "b", late)
	o.asks(2, "a", leaving())
	o.asks(200, "b", leaving())
	o.run(t)
	assert.Equal(t, []string{"100 start a"}, o.commands)
	assert.Equal(t, &answered{FDBCommandAnswer: contract.FDBCommandAnswer{Later: true}, at: 100, done: true}, answer)
}

func TestOnlyTheStartOfARestoreMayRunLong(t *testing.T) {
	o := newOwned()
	limits := map[contract.FDBOperation]time.Duration{}
	note := func(ctx context.Context, command contract.FDBCommand) (contract.FDBOutcome, error) {
		limits[command.Operation] = activity.GetInfo(ctx).StartToCloseTimeout
		return contract.FDBOutcome{Done: true}, nil
	}
	o.OnActivity(contract.RunFDBCommand.Name, mock.Anything, mock.Anything).Return(note)
	o.OnActivity(contract.RunFDBRestoreCommand.Name, mock.Anything, mock.Anything).Return(note)
	for second, operation := range []contract.FDBOperation{contract.FDBRestoreStart, contract.FDBRestoreAbort, contract.FDBStart} {
		o.asks(second, "a", with(leaving(), operation))
	}
	o.run(t)
	assert.Equal(t, map[contract.FDBOperation]time.Duration{
		contract.FDBRestoreStart: 8 * time.Minute, contract.FDBRestoreAbort: 2 * time.Minute, contract.FDBStart: 2 * time.Minute,
	}, limits)
}

// A start of a restore delays the others for longer than they wait: they are answered so, and none is begun when nobody awaits it.
func TestWhatWaitsForTheStartOfARestoreMayBeTooLate(t *testing.T) {
	o := newOwned()
	o.OnActivity(contract.RunFDBRestoreCommand.Name, mock.Anything, mock.Anything).Return(o.command).After(7 * time.Minute)
	restore := o.asks(0, "r", with(leaving(), contract.FDBRestoreStart))
	first := o.asks(1, "a", with(running(), contract.FDBStart))
	later := o.asks(180, "a", with(running(), contract.FDBStart))
	o.asks(500, "a", leaving())
	o.run(t)
	assert.True(t, restore.Outcome.Done)
	assert.True(t, first.Later)
	assert.True(t, later.Outcome.Done)
	assert.Equal(t, []string{"420 restore r", "420 start a"}, o.commands)
}

func TestACommandOfUnknownOutcomeIsNotRepeated(t *testing.T) {
	const unknown = "not known; the state is read again before anything is repeated"
	tests := map[string]struct {
		err   error
		class contract.FDBClass
		want  string
	}{
		"the worker was killed": {
			err:   temporal.NewHeartbeatTimeoutError(),
			class: contract.FDBClassTimeout, want: "the worker that ran start was lost, or did not end it within 2m0s: whether it took effect is " + unknown,
		},
		"no worker picked it up": {
			err: temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), class: contract.FDBClassNoWorker,
			want: "no worker picked up start from task queue holdfast-fdb-west within 1m0s, and it was not run: either no holdfast-worker with " +
				"--fdb-bin-dir serves that queue ('temporal task-queue describe --task-queue holdfast-fdb-west' shows which do), or those " +
				"that do are busy",
		},
		"the activity failed": {
			err: errors.New("the Secret cannot be read"), class: contract.FDBClassOther,
			want: "start: the Secret cannot be read; whether it took effect is " + unknown,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := newOwned()
			o.OnActivity(contract.RunFDBCommand.Name, mock.Anything, mock.Anything).
				Return(contract.FDBOutcome{}, test.err).Once()
			o.lasting(0)
			answer := o.asks(0, "a", with(running(), contract.FDBStart))
			next := o.asks(1, "a", with(leaving(), contract.FDBAbort))
			o.run(t)
			assert.Equal(t, []string{"1 abort a"}, o.commands, "what comes next is run")
			require.NotNil(t, answer.Outcome)
			assert.Equal(t, &contract.FDBFailure{Class: test.class, Message: test.want}, answer.Outcome.Failure)
			assert.False(t, answer.Outcome.Done)
			assert.True(t, next.Outcome.Done)
		})
	}
}

func TestAgentsArePausedOnlyWhenAllWantIt(t *testing.T) {
	o := newOwned()
	o.lasting(0)
	early := o.asks(0, "a", with(pausing(), contract.FDBPause))
	agreed := o.asks(31, "a", with(pausing(), contract.FDBPause))
	joins := o.asks(40, "b", running())
	opposed := o.asks(41, "a", with(pausing(), contract.FDBPause))
	resumed := o.asks(42, "b", with(running(), contract.FDBResume))
	unwilling := o.asks(43, "a", with(pausing(), contract.FDBResume))
	yields := o.asks(50, "b", with(pausing(), contract.FDBPause))
	leaver := o.asks(60, "b", with(leaving(), contract.FDBPause))
	stopped := o.asks(61, "b", with(leaving(), contract.FDBResume))
	last := o.asks(70, "a", leaving())
	o.run(t)
	assert.True(t, early.Later, "the others have not had time for a request")
	assert.True(t, agreed.Outcome.Done)
	assert.Equal(t, []string{"team/a"}, joins.Opposed)
	assert.True(t, opposed.Later)
	assert.Equal(t, []string{"team/b"}, opposed.Opposed)
	assert.True(t, resumed.Outcome.Done, "the agents are not paused for one that does not want it")
	assert.True(t, unwilling.Later)
	assert.True(t, yields.Outcome.Done)
	assert.Empty(t, yields.Opposed)
	assert.True(t, leaver.Later, "one that is no member pauses nothing")
	assert.True(t, stopped.Later, "the one that stays wants the pause")
	assert.Empty(t, last.Opposed)
	assert.Equal(t, []string{"31 pause a", "42 resume b", "50 pause b"}, o.commands)
	assert.Equal(t, []string{"40 a", "50 a"}, o.signalled, "signalled when its opponents have changed")
}

func TestAMemberThatIsGoneStandsInNobodysWay(t *testing.T) {
	tests := map[string]struct {
		deadFrom, deadTo int
		repeats          int
		wantPaused       bool
	}{
		"gone for good":                           {deadFrom: 10, deadTo: 2000, wantPaused: true},
		"gone only for a moment":                  {deadFrom: 50, deadTo: 70},
		"gone, back, and sends a request between": {deadFrom: 10, deadTo: 2000, repeats: 90},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := newOwned()
			o.lasting(0)
			o.asks(0, "a", pausing())
			o.asks(1, "b", running())
			set := func(dead bool) func() {
				return func() {
					o.mu.Lock()
					defer o.mu.Unlock()
					o.dead["b"] = dead
				}
			}
			o.at(test.deadFrom, set(true))
			o.at(test.deadTo, set(false))
			if test.repeats > 0 {
				o.asks(test.repeats, "b", running())
			}
			answer := o.asks(170, "a", with(pausing(), contract.FDBPause))
			o.asks(400, "b", leaving())
			o.asks(401, "a", leaving())
			o.run(t)
			assert.Equal(t, !test.wantPaused, answer.Later)
			require.NotEmpty(t, o.checks)
			for i := 1; i < len(o.checks); i++ {
				assert.GreaterOrEqual(t, o.checks[i]-o.checks[i-1], 60, "at most once a minute")
			}
			if test.wantPaused {
				assert.Equal(t, []int{61, 121}, o.checks, "only while a member is in the way")
				assert.Equal(t, []string{"1 a", "121 a"}, o.signalled)
			}
		})
	}
}

func TestNoWorkflowIsCheckedThatIsInNobodysWay(t *testing.T) {
	o := newOwned()
	o.asks(0, "a", running())
	o.asks(1, "b", running())
	o.asks(4000, "a", leaving())
	o.asks(4001, "b", leaving())
	o.run(t)
	assert.Empty(t, o.checks)
	assert.Empty(t, o.signalled)
	assert.Equal(t, 4601, o.second())
}

func TestWhatCannotBeAnsweredIsRefused(t *testing.T) {
	tests := map[string]struct {
		change func(*contract.FDBCommandRequest)
		want   string
	}{
		"another cluster": {func(a *contract.FDBCommandRequest) { a.Cluster = "other:1" }, `cluster: the request for "other:1" was sent to the owner of "lab:8f3k"`},
		"nobody":          {func(a *contract.FDBCommandRequest) { a.Member.WorkflowID = "" }, "member: must have a workflow ID and a name"},
		"nameless":        {func(a *contract.FDBCommandRequest) { a.Member.Name = "" }, "member: must have a workflow ID and a name"},
		"no queue":        {func(a *contract.FDBCommandRequest) { a.Queue = "" }, "queue: must be the task queue on which to run the command"},
		"no limit": {
			func(a *contract.FDBCommandRequest) { a.Until = 0 }, "until: must be the time after which the command no longer begins",
		},
		"unknown": {func(a *contract.FDBCommandRequest) { a.Command.Operation = "delete" }, `command: unknown operation "delete"`},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := newOwned()
			request := contract.FDBCommandRequest{
				Cluster: workflowtest.Lab, Member: contract.FDBMember{WorkflowID: "a", Name: "team/a"}, Queue: "q", Until: o.start.Unix() + 1,
				Command: &contract.FDBCommand{Operation: contract.FDBStart},
			}
			test.change(&request)
			var refused error
			o.at(0, func() {
				o.UpdateWorkflow(contract.UpdateFDBCluster, "1", &testsuite.TestUpdateCallback{
					OnAccept: func() { t.Error("accepted") }, OnReject: func(err error) { refused = err }, OnComplete: func(any, error) {},
				}, request)
			})
			o.run(t)
			var application *temporal.ApplicationError
			require.ErrorAs(t, refused, &application)
			assert.Equal(t, test.want, application.Message())
			assert.Equal(t, contract.ErrorFDBRequestInvalid, application.Type())
			assert.True(t, application.NonRetryable())
		})
	}
}

func TestAnOwnerContinuesAsNewWhenNobodyWaits(t *testing.T) {
	o := newOwned()
	o.lasting(30 * time.Second)
	o.at(2, func() { o.SetContinueAsNewSuggested(true) })
	first := o.asks(0, "a", with(pausing(), contract.FDBStart))
	second := o.asks(1, "b", with(running(), contract.FDBStart))
	o.ExecuteWorkflow(contract.KindFDBCluster.Workflow, contract.FDBClusterInput{
		Cluster: workflowtest.Lab, Since: 7, Members: []contract.FDBMember{{WorkflowID: "b", Name: "team/b", Paused: true}},
	})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, o.GetWorkflowError(), &again)
	var next contract.FDBClusterInput
	require.NoError(t, workflowtest.Decode(again, &next))
	assert.Equal(t, contract.FDBClusterInput{
		Cluster: workflowtest.Lab, Since: 7, Members: []contract.FDBMember{
			{WorkflowID: "b", Name: "team/b"}, {WorkflowID: "a", Name: "team/a", Paused: true},
		},
	}, next)
	assert.True(t, first.Outcome.Done)
	assert.True(t, second.Outcome.Done)
	assert.Equal(t, []string{"30 start a", "60 start b"}, o.commands)
}

func TestAnOwnerThatIsCancelledEndsWhatItHasBegun(t *testing.T) {
	o := newOwned()
	o.lasting(30 * time.Second)
	first := o.asks(0, "a", with(running(), contract.FDBStart))
	second := o.asks(1, "b", with(running(), contract.FDBStart))
	o.at(2, o.CancelWorkflow)
	o.ExecuteWorkflow(contract.KindFDBCluster.Workflow, contract.FDBClusterInput{Cluster: workflowtest.Lab})
	require.True(t, temporal.IsCanceledError(o.GetWorkflowError()), "%v", o.GetWorkflowError())
	assert.True(t, first.Outcome.Done)
	assert.True(t, second.Outcome.Done)
	assert.Equal(t, []string{"30 start a", "60 start b"}, o.commands)
}

func TestTheOwnerShowsWhatRunsAndWhatAllWant(t *testing.T) {
	o := newOwned()
	o.lasting(30 * time.Second)
	o.asks(0, "a", with(running(), contract.FDBStart))
	o.asks(1, "b", with(pausing(), contract.FDBStart))
	var state contract.FDBClusterState
	var details string
	o.at(10, func() {
		answer, err := o.QueryWorkflow(contract.QueryState)
		require.NoError(t, err)
		require.NoError(t, answer.Get(&state))
		details = workflowtest.CurrentDetails(t, &workflowtest.Scenario{TestWorkflowEnvironment: o.TestWorkflowEnvironment})
	})
	o.asks(100, "a", leaving())
	o.asks(101, "b", leaving())
	o.run(t)
	assert.Equal(t, contract.FDBClusterState{
		Members: []contract.FDBMember{{WorkflowID: "a", Name: "team/a"}, {WorkflowID: "b", Name: "team/b", Paused: true}},
		Running: &contract.FDBCommand{Operation: contract.FDBStart, Tag: "a"}, Requester: "team/a", Waiting: 1,
	}, state)
	assert.Equal(t, "**Running** since 2026-08-01T12:00:00Z: start a, for team/a. Commands waiting: 1.\n\n"+
		"The agents of a cluster pause for all of its backups or for none. The backups request:\n\n"+
		"- team/a: running\n- team/b: paused\n\n**They disagree:** the agents pause only when all request it.\n", details)
}

func TestAnOwnerDoesNotEndBeforeItsCommand(t *testing.T) {
	o := newOwned()
	o.lasting(11 * time.Minute)
	answer := o.asks(0, "a", with(leaving(), contract.FDBStart))
	o.run(t)
	assert.True(t, answer.Outcome.Done)
	assert.Equal(t, 1260, o.second(), "it ends ten minutes after the answer")
}

// A signal under way ends with the owner, and those that wait behind it are not sent: the members find out at their next request.
func TestAnOwnerIsCancelledWhileItSignals(t *testing.T) {
	o := newOwned()
	o.asks(0, "b", running())
	o.asks(1, "c", running())
	answer := o.asks(2, "a", pausing())
	o.at(2, o.CancelWorkflow)
	o.ExecuteWorkflow(contract.KindFDBCluster.Workflow, contract.FDBClusterInput{Cluster: workflowtest.Lab})
	require.True(t, temporal.IsCanceledError(o.GetWorkflowError()), "%v", o.GetWorkflowError())
	assert.True(t, answer.done)
}
