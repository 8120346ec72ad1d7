package fdb

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	temporalsdk "go.temporal.io/sdk/temporal"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

// queueTemporal is a Temporal in which only the queue of expirations answers.
type queueTemporal = operatortest.Coordinator[contract.FDBExpiryQueueState]

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
	shown := shownQueue(t, &queueTemporal{ID: "west/fdb-expiry-queue", State: busyQueue()})
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
	shown = shownQueue(t, &queueTemporal{ID: "west/fdb-expiry-queue", State: &contract.FDBExpiryQueueState{Limit: 1, Entries: busyQueue().Entries[:1]}})
	assert.Equal(t, []string{
		"0 of at most 1 at a time run; 1 in the queue.", "", "Queue:",
		"POSITION NAMESPACE NAME JOB NEXT-TURN LAST-BEGIN LAST-OUTCOME", "1 shop new expire due",
	}, operatortest.Lines(operatortest.Printed(t, "table", shown, shown.Print)))
}

func TestAnEmptyQueueIsSaidInWords(t *testing.T) {
	for title, temporal := range map[string]*queueTemporal{
		"it never ran": {ID: "west/fdb-expiry-queue", Err: serviceerror.NewNotFound("workflow not found")},
		"it has ended": {ID: "west/fdb-expiry-queue", Closed: true, State: busyQueue()},
	} {
		t.Run(title, func(t *testing.T) {
			shown := shownQueue(t, temporal)
			assert.Equal(t, "Nobody waits: the queue of Kubernetes cluster west is empty: no FoundationDBBackup there has an expiry "+
				"policy or waits for its data to be deleted. If one should, check its status, and that --cluster-id is the "+
				"worker's.\n", operatortest.Printed(t, "table", shown, shown.Print))
			assert.JSONEq(t, `{"cluster":"west","empty":true}`, operatortest.Printed(t, "json", shown, nil))
		})
	}
	_, err := readFDBQueue(t.Context(), &queueTemporal{ID: "west/fdb-expiry-queue", Err: errors.New("away")}, "west", queueNow)
	assert.EqualError(t, err, "query the queue of Kubernetes cluster west (check that Temporal and a holdfast-worker with that "+
		"--cluster-id run): away")
}

func TestTheQueueIsSteered(t *testing.T) {
	name := contract.FDBQueueName{Namespace: "shop", Name: "ledger"}
	temporal := &queueTemporal{ID: "west/fdb-expiry-queue", Busy: 2, Answer: contract.TurnAnswer{Message: "shop/ledger is first."}}
	answer, err := fdbQueue("west").Update(t.Context(), temporal, contract.UpdateExpireNow, name)
	require.NoError(t, err)
	assert.Equal(t, "shop/ledger is first.", answer.Message)
	assert.Equal(t, "west/fdb-expiry-queue", temporal.Update.WorkflowID)
	assert.Equal(t, contract.UpdateExpireNow, temporal.Update.UpdateName)
	assert.Equal(t, []any{name}, temporal.Update.Args)
	assert.Equal(t, client.WorkflowUpdateStageCompleted, temporal.Update.WaitForStage)
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
			"no answer within 1m10s: check that Temporal and a holdfast-worker with --cluster-id west run. The request may still take effect",
		},
		"something else": {errors.New("broken"), "call the queue of Kubernetes cluster west: broken"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			_, err := fdbQueue("west").Update(t.Context(), &queueTemporal{ID: "west/fdb-expiry-queue", Err: test.err}, contract.UpdateRemoveEntry, contract.FDBQueueName{})
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}
