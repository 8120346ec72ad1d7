package coordination_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// More ask at once than an owner may have updates in flight, and it continues as new on the way: nobody is forgotten.
func TestCommandsOfAClusterRunOneAtATimeOverManyRuns(t *testing.T) {
	r := newRig(t)
	r.owners()
	r.house(call.Options{})
	r.tools()
	asked := map[string]client.WorkflowRun{}
	for _, fdb := range []string{"one", "two"} {
		for i := range 25 {
			tag := fmt.Sprintf("%s-%d", fdb, i)
			asked[tag] = r.asks(fdb, tag)
		}
	}
	for tag, run := range asked {
		answer := r.answer(run)
		require.NotNil(t, answer.Outcome, tag)
		assert.True(t, answer.Outcome.Done, tag)
	}
	begun, ended := r.commands()
	assert.Len(t, begun, 50, "each ran, and only once")
	assert.Len(t, ended, 50)
	assert.False(t, r.overlap, "two commands ran at a time in one FoundationDB cluster")
	for _, fdb := range []string{"one", "two"} {
		r.succeeds(func(ctx context.Context) error {
			runs, _, err := r.runs(ctx, contract.FDBClusterID(r.cluster+":"+fdb))
			if err == nil && runs < 2 {
				return eventually.Stop(errors.New("it never continued as new"))
			}
			return err
		})
	}
}

func TestAnOwnerThatIsGoneIsStartedByTheNextToAsk(t *testing.T) {
	r := newRig(t)
	r.owners()
	r.house(call.Options{})
	r.tools()
	id := contract.FDBClusterID(r.cluster + ":one")
	assert.True(t, r.answer(r.asks("one", "first")).Outcome.Done)
	assert.Equal(t, []string{"shop"}, r.keys, "the fairness key is its object's namespace")

	require.NoError(t, temporalClient.TerminateWorkflow(t.Context(), id, "", "lost"))
	assert.True(t, r.answer(r.asks("one", "second")).Outcome.Done)

	t.Run("also while it is being asked", func(*testing.T) {
		held := r.asks("one", "hold")
		r.eventually(func() bool { begun, _ := r.commands(); return len(begun) == 3 }, "the command never began")
		require.NoError(t, temporalClient.TerminateWorkflow(t.Context(), id, "", "lost"))
		close(r.hold)
		assert.True(t, r.answer(held).Outcome.Done)
		begun, _ := r.commands()
		assert.Equal(t, []string{"first", "second", "hold", "hold"}, begun, "asked again, as nobody knows what became of it")
	})
}

func TestACommandWhoseWorkerWasKilledIsNotRepeated(t *testing.T) {
	r := newRig(t)
	r.owners()
	r.house(call.Options{})
	killed := r.tools()
	lost := r.asks("one", "lost")
	r.eventually(func() bool { begun, _ := r.commands(); return len(begun) == 1 }, "the command never began")
	next := r.asks("one", "next")
	defer close(r.hold)
	go killed.Stop()
	r.tools()
	answer := r.answer(lost)
	require.NotNil(t, answer.Outcome)
	require.NotNil(t, answer.Outcome.Failure)
	assert.Equal(t, contract.FDBClassTimeout, answer.Outcome.Failure.Class)
	assert.Contains(t, answer.Outcome.Failure.Message, "the state is read again before anything is repeated")
	assert.True(t, r.answer(next).Outcome.Done)
	begun, _ := r.commands()
	assert.Equal(t, []string{"lost", "next"}, begun)
}

// The worker of the owner, and the one that waits for the answer, may be replaced while a command runs: it runs once.
func TestAnAskOutlivesTheWorkersThatServeIt(t *testing.T) {
	r := newRig(t)
	owners, house := r.owners(), r.house(call.Options{})
	r.tools()
	held := r.asks("one", "hold")
	r.eventually(func() bool { begun, _ := r.commands(); return len(begun) == 1 }, "the command never began")
	house.Stop()
	owners.Stop()
	r.owners()
	r.house(call.Options{})
	r.succeeds(func(ctx context.Context) error { // the activity is tried again
		described, err := temporalClient.DescribeWorkflowExecution(ctx, held.GetID(), "")
		if err != nil {
			return err
		}
		pending := described.GetPendingActivities()
		if len(pending) == 1 && pending[0].GetAttempt() > 1 && pending[0].GetLastHeartbeatTime() != nil {
			return nil
		}
		return fmt.Errorf("the ask was not tried again: %v", pending)
	})
	close(r.hold)
	assert.True(t, r.answer(held).Outcome.Done)
	begun, _ := r.commands()
	assert.Equal(t, []string{"hold"}, begun)
	assert.Equal(t, 1, r.updates(contract.FDBClusterID(r.cluster+":one")), "the repeated attempt waits for the same answer")
}

func TestAnAskThatIsRefusedIsNotTriedAgain(t *testing.T) {
	r := newRig(t)
	r.owners()
	r.house(call.Options{})
	run := r.start("requester", r.cluster+"/fdbb/x", contract.FDBCommandRequest{
		Cluster: r.cluster + ":one", Queue: "q", Command: &contract.FDBCommand{Operation: "delete"},
	})
	err := r.result(run, nil)
	require.ErrorContains(t, err, `command: unknown operation "delete"`)
	require.ErrorContains(t, err, contract.ErrorFDBRequestInvalid)
}
