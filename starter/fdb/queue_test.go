package fdb

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	temporalsdk "go.temporal.io/sdk/temporal"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

// queueTemporal is a Temporal in which only the queue of expirations answers.
type queueTemporal struct {
	client.Client
	state  *contract.FDBExpiryQueueState
	closed bool
	err    error
	answer contract.FDBQueueAnswer
	update client.UpdateWorkflowOptions
	busy   int // how often it continues as new when it is called
}

func (q *queueTemporal) QueryWorkflowWithOptions(
	_ context.Context, request *client.QueryWorkflowWithOptionsRequest,
) (*client.QueryWorkflowWithOptionsResponse, error) {
	if request.WorkflowID != "west/fdb-expiry-queue" || request.QueryType != contract.QueryState {
		return nil, serviceerror.NewNotFound(request.WorkflowID)
	}
	if q.closed && request.QueryRejectCondition == enumspb.QUERY_REJECT_CONDITION_NOT_OPEN {
		return &client.QueryWorkflowWithOptionsResponse{QueryRejected: &querypb.QueryRejected{}}, nil
	}
	if q.err != nil {
		return nil, q.err
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(q.state)
	if err != nil {
		return nil, err
	}
	return &client.QueryWorkflowWithOptionsResponse{QueryResult: client.NewValue(payloads)}, nil
}

func (q *queueTemporal) UpdateWorkflow(
	_ context.Context, options client.UpdateWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	q.update = options
	if q.busy > 0 {
		q.busy--
		return nil, serviceerror.NewWorkflowNotReady("it continues as new")
	}
	return queueAnswer{answer: q.answer}, q.err
}

type queueAnswer struct {
	client.WorkflowUpdateHandle
	answer contract.FDBQueueAnswer
}

func (a queueAnswer) Get(_ context.Context, into any) error {
	*into.(*contract.FDBQueueAnswer) = a.answer
	return nil
}

var queueNow = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func busyQueue() *contract.FDBExpiryQueueState {
	ref := func(namespace, name string) contract.ObjectRef {
		return contract.ObjectRef{Namespace: namespace, Name: name, UID: "u-" + name}
	}
	now := queueNow.Unix()
	return &contract.FDBExpiryQueueState{
		Limit: 2,
		Turns: []contract.FDBTurn{
			{Ref: ref("shop", "ledger"), Job: contract.FDBJobExpire, Turn: now - 60},
			{Ref: ref("bank", "old"), Job: contract.FDBJobDelete, Turn: now - 90, Closing: true},
			{Ref: ref("bank", "vault"), Job: contract.FDBJobExpire, Turn: now - 30, ClosedSince: now - 10},
		},
		Entries: []contract.FDBQueueEntry{
			{Ref: ref("shop", "new"), Job: contract.FDBJobExpire},
			{Ref: ref("bank", "vault"), Job: contract.FDBJobExpire, Last: now - 30, Outcome: contract.FDBTurnDone},
			{Ref: ref("bank", "old"), Job: contract.FDBJobDelete, NotBefore: now - 5, Last: now - 90},
			{Ref: ref("shop", "ledger"), Job: contract.FDBJobExpire, NotBefore: now + 3540, Last: now - 60, Outcome: contract.FDBTurnRefused},
		},
	}
}

func shownQueue(t *testing.T, temporal *queueTemporal) *shownFDBQueue {
	t.Helper()
	shown, err := readFDBQueue(t.Context(), temporal, "west", queueNow)
	require.NoError(t, err)
	return shown
}

func TestTheQueueIsShown(t *testing.T) {
	shown := shownQueue(t, &queueTemporal{state: busyQueue()})
	assert.Equal(t, []string{
		"2 of at most 2 at a time run; 4 in the queue.", "", "Running:",
		"NAMESPACE NAME JOB SINCE STATE",
		"shop ledger expire 2026-08-01T11:59:00Z running",
		"bank old delete 2026-08-01T11:58:30Z terminating",
		"bank vault expire 2026-08-01T11:59:30Z lost",
		"", "Queue:",
		"POSITION NAMESPACE NAME JOB NEXT-TURN LAST-BEGIN LAST-OUTCOME",
		"1 shop new expire due",
		"2 bank vault expire when its turn has ended 2026-08-01T11:59:30Z Done",
		"3 bank old delete when its turn has ended 2026-08-01T11:58:30Z",
		"4 shop ledger expire not before 2026-08-01T12:59:00Z 2026-08-01T11:59:00Z Refused",
	}, operatortest.Lines(operatortest.Printed(t, "table", shown, shown.Print)))
	for _, output := range []string{"json", "yaml"} {
		var read shownFDBQueue
		require.NoError(t, yaml.UnmarshalStrict([]byte(operatortest.Printed(t, output, shown, nil)), &read))
		assert.Equal(t, *shown, read)
	}
	shown = shownQueue(t, &queueTemporal{state: &contract.FDBExpiryQueueState{Limit: 1, Entries: busyQueue().Entries[:1]}})
	assert.Equal(t, []string{
		"0 of at most 1 at a time run; 1 in the queue.", "", "Queue:",
		"POSITION NAMESPACE NAME JOB NEXT-TURN LAST-BEGIN LAST-OUTCOME", "1 shop new expire due",
	}, operatortest.Lines(operatortest.Printed(t, "table", shown, shown.Print)))
}

func TestAnEmptyQueueIsSaidInWords(t *testing.T) {
	for title, temporal := range map[string]*queueTemporal{
		"it never ran": {err: serviceerror.NewNotFound("workflow not found")},
		"it has ended": {closed: true, state: busyQueue()},
	} {
		t.Run(title, func(t *testing.T) {
			shown := shownQueue(t, temporal)
			assert.Equal(t, "Nobody waits: the queue of Kubernetes cluster west is empty: no FoundationDBBackup there has an expiry "+
				"policy or waits for its data to be deleted. If one should, check its status, and that --cluster-id is the "+
				"worker's.\n", operatortest.Printed(t, "table", shown, shown.Print))
			assert.JSONEq(t, `{"cluster":"west","empty":true}`, operatortest.Printed(t, "json", shown, nil))
		})
	}
	_, err := readFDBQueue(t.Context(), &queueTemporal{err: errors.New("away")}, "west", queueNow)
	assert.EqualError(t, err, "query the queue of Kubernetes cluster west (check that Temporal and a holdfast-worker with that "+
		"--cluster-id run): away")
}

func TestTheQueueIsSteered(t *testing.T) {
	name := contract.FDBQueueName{Namespace: "shop", Name: "ledger"}
	temporal := &queueTemporal{busy: 2, answer: contract.FDBQueueAnswer{Message: "shop/ledger is first."}}
	answer, err := steerFDBQueue(t.Context(), temporal, "west", contract.UpdateExpireNow, name)
	require.NoError(t, err)
	assert.Equal(t, "shop/ledger is first.", answer.Message)
	assert.Equal(t, "west/fdb-expiry-queue", temporal.update.WorkflowID)
	assert.Equal(t, contract.UpdateExpireNow, temporal.update.UpdateName)
	assert.Equal(t, []any{name}, temporal.update.Args)
	assert.Equal(t, client.WorkflowUpdateStageCompleted, temporal.update.WaitForStage)
}

func TestWhatTheQueueDoesNotDoIsExplained(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"it does not run": {serviceerror.NewNotFound("workflow not found"), "the queue of Kubernetes cluster west is empty"},
		"it refuses": {
			temporalsdk.NewNonRetryableApplicationError("shop/x is not in the queue", contract.ErrorFDBQueueInvalid, nil),
			"shop/x is not in the queue",
		},
		"no worker answers": {
			client.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded),
			"no answer within 10s: check that Temporal and a holdfast-worker with --cluster-id west run. The request may still take effect",
		},
		"something else": {errors.New("broken"), "call the queue of Kubernetes cluster west: broken"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			_, err := steerFDBQueue(t.Context(), &queueTemporal{err: test.err}, "west", contract.UpdateRemoveEntry, contract.FDBQueueName{})
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}
