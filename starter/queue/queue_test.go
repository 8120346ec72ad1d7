package queue

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

// fakeTemporal is a Temporal in which only the queue before Velero answers.
type fakeTemporal = operatortest.Coordinator[contract.VeleroQueueState]

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func member(pool contract.Pool, lane int, namespace, name string, age int64) contract.TurnMember {
	return contract.TurnMember{
		TurnKey: contract.TurnKey{Pool: pool, ObjectRef: contract.ObjectRef{Namespace: namespace, Name: name, UID: "u-" + name}},
		Lane:    lane, Created: now.Unix() - age,
	}
}

// busy is a full queue with an operator's limit; restores are not limited.
func busy() *contract.VeleroQueueState {
	of := func(lane int, namespace, name string, age int64) contract.TurnMember {
		return member(contract.PoolBackups, lane, namespace, name, age)
	}
	first := of(contract.LaneDrill, "bank", "drill", 7200)
	first.First = true
	return &contract.VeleroQueueState{
		Rules: contract.TurnRules{Limits: map[contract.Pool]int{contract.PoolBackups: 4}, Timeout: 14400},
		Pools: []contract.PoolShown{
			{
				Pool: contract.PoolBackups, Limit: 2,
				Override: &contract.LimitOverride{Limit: 2, Until: now.Add(time.Hour).Unix()},
				Turns: []contract.HeldTurn{
					{TurnMember: of(contract.LaneHand, "shop", "before-upgrade", 90), Turn: now.Unix() - 60},
					{TurnMember: of(contract.LanePlan, "bank", "nightly-1", 900), Turn: now.Unix() - 600, ClosedSince: now.Unix() - 30},
				},
				Waiting: []contract.TurnMember{
					first, of(contract.LanePlan, "mail", "nightly-2", 300), of(contract.LanePlan, "shop", "nightly-3", 600),
				},
				Beyond: 5,
			},
			{Pool: contract.PoolRestores},
		},
	}
}

func queueOf(t *testing.T, temporal *fakeTemporal) *shown {
	t.Helper()
	queue, err := read(t.Context(), temporal, "west", now)
	require.NoError(t, err)
	return queue
}

func TestTheQueueIsShown(t *testing.T) {
	queue := queueOf(t, &fakeTemporal{ID: "west/velero-queue", State: busy()})
	assert.Equal(t, []string{
		"Velero backups: 2 of at most 2 at a time; 8 wait.",
		"An operator has set the limit until 2026-11-25T13:00:00Z; the policy's is 4.", "", "Have a turn:",
		"NAMESPACE NAME LANE SINCE STATE",
		"shop before-upgrade by-hand 2026-11-25T11:59:00Z running",
		"bank nightly-1 plan 2026-11-25T11:50:00Z lost",
		"", "Wait:",
		"POSITION NAMESPACE NAME LANE CREATED WAITS-FOR",
		"1 bank drill drill 2026-11-25T10:00:00Z limit, put first by an operator",
		"2 mail nightly-2 plan 2026-11-25T11:55:00Z limit",
		"3 shop nightly-3 plan 2026-11-25T11:50:00Z its namespace has a turn",
		"", "About 5 more come after the first 3.", "",
		"Velero restores: the policy sets no limit; Velero is handed all of them at once.",
	}, operatortest.Lines(operatortest.Printed(t, "table", queue, queue.Print)))
	for _, output := range []string{"json", "yaml"} {
		var again shown
		require.NoError(t, yaml.UnmarshalStrict([]byte(operatortest.Printed(t, output, queue, nil)), &again))
		assert.Equal(t, *queue, again)
	}
}

// The positions and numbers stay those of all: a namespace's objects alone would seem to be next.
func TestOneNamespaceIsShown(t *testing.T) {
	queue := queueOf(t, &fakeTemporal{ID: "west/velero-queue", State: busy()})
	queue.only("mail")
	assert.Equal(t, []string{
		"Velero backups: 2 of at most 2 at a time; 8 wait.",
		"An operator has set the limit until 2026-11-25T13:00:00Z; the policy's is 4.", "", "Wait:",
		"POSITION NAMESPACE NAME LANE CREATED WAITS-FOR",
		"2 mail nightly-2 plan 2026-11-25T11:55:00Z limit",
		"", "About 5 more come after the first 3.", "",
		"Velero restores: the policy sets no limit; Velero is handed all of them at once.",
	}, operatortest.Lines(operatortest.Printed(t, "table", queue, queue.Print)))
}

func TestWhyAnObjectWaits(t *testing.T) {
	turn := func(pool contract.Pool, namespace string) contract.HeldTurn {
		return contract.HeldTurn{TurnMember: member(pool, 0, namespace, "has-it", 9)}
	}
	first := member(contract.PoolBackups, 0, "shop", "a", 1)
	first.First = true
	rests := member(contract.PoolBackups, 0, "shop", "a", 1)
	rests.NotBefore = now.Unix() + 1
	for title, test := range map[string]struct {
		of     contract.PoolShown
		paused bool
		want   []reason
	}{
		"the namespace, while another waits": {
			of: contract.PoolShown{
				Pool: contract.PoolBackups, Limit: 2, Turns: []contract.HeldTurn{turn(contract.PoolBackups, "shop")},
				Waiting: []contract.TurnMember{member(contract.PoolBackups, 0, "shop", "a", 1), member(contract.PoolBackups, 0, "bank", "b", 1)},
			},
			want: []reason{reasonNamespace, reasonNothing},
		},
		"the limit, if no other waits": {
			of: contract.PoolShown{
				Pool: contract.PoolBackups, Limit: 1, Turns: []contract.HeldTurn{turn(contract.PoolBackups, "shop")},
				Waiting: []contract.TurnMember{member(contract.PoolBackups, 0, "shop", "a", 1)},
			},
			want: []reason{reasonLimit},
		},
		"the limit, for one that is first": {
			of: contract.PoolShown{
				Pool: contract.PoolBackups, Limit: 1, Turns: []contract.HeldTurn{turn(contract.PoolBackups, "shop")},
				Waiting: []contract.TurnMember{first, member(contract.PoolBackups, 0, "bank", "b", 1)},
			},
			want: []reason{reasonLimit, reasonLimit},
		},
		"its pause, although there is room": {
			of:   contract.PoolShown{Pool: contract.PoolBackups, Limit: 1, Waiting: []contract.TurnMember{rests}},
			want: []reason{reasonReturn},
		},
		"restores do not wait for their namespace": {
			of: contract.PoolShown{
				Pool: contract.PoolRestores, Limit: 1, Turns: []contract.HeldTurn{turn(contract.PoolRestores, "shop")},
				Waiting: []contract.TurnMember{member(contract.PoolRestores, 0, "shop", "a", 1), member(contract.PoolRestores, 0, "bank", "b", 1)},
			},
			want: []reason{reasonLimit, reasonLimit},
		},
		"a pause": {
			of:     contract.PoolShown{Pool: contract.PoolBackups, Limit: 1, Waiting: []contract.TurnMember{first}},
			paused: true, want: []reason{reasonPause},
		},
	} {
		t.Run(title, func(t *testing.T) {
			var found []reason
			for _, position := range poolShown(test.of, 1, test.paused, now).Queue {
				found = append(found, position.WaitsFor)
			}
			assert.Equal(t, test.want, found)
		})
	}
}

func TestAPauseIsShown(t *testing.T) {
	state := busy()
	state.PausedUntil = now.Unix() + 30
	queue := queueOf(t, &fakeTemporal{ID: "west/velero-queue", State: state})
	printed := operatortest.Printed(t, "table", queue, queue.Print)
	assert.Contains(t, printed, "Paused until 2026-11-25T12:00:30Z: an earlier run of the queue was lost")
	assert.Contains(t, printed, "pause after a loss")
	state.PausedUntil = now.Unix() - 30
	assert.Nil(t, queueOf(t, &fakeTemporal{ID: "west/velero-queue", State: state}).PausedUntil, "it is over")
}

func TestNoQueueIsSaidInWords(t *testing.T) {
	for title, temporal := range map[string]*fakeTemporal{
		"it never ran": {ID: "west/velero-queue", Err: serviceerror.NewNotFound("workflow not found")},
		"it has ended": {ID: "west/velero-queue", Closed: true, State: busy()},
	} {
		t.Run(title, func(t *testing.T) {
			queue := queueOf(t, temporal)
			assert.Equal(t, "Nobody waits: Kubernetes cluster west has no queue before Velero: the policy sets neither queue.maxActive "+
				"nor queue.maxActiveRestores, and Velero has everything at once. If the policy sets one, check that a holdfast watch "+
				"and a holdfast-worker run, and that --cluster-id is theirs.\n", operatortest.Printed(t, "table", queue, queue.Print))
			assert.JSONEq(t, `{"cluster":"west","off":true}`, operatortest.Printed(t, "json", queue, nil))
		})
	}
	_, err := read(t.Context(), &fakeTemporal{ID: "west/velero-queue", Err: errors.New("away")}, "west", now)
	assert.ErrorContains(t, err, "query the queue of Kubernetes cluster west (check that Temporal and a holdfast-worker")
}

func TestTheQueueIsChanged(t *testing.T) {
	limit := contract.TurnLimit{Pool: contract.PoolBackups, Limit: 8, For: 7200}
	temporal := &fakeTemporal{ID: "west/velero-queue", Busy: 2, Answer: contract.TurnAnswer{Message: "backups: 8 at a time."}}
	answer, err := coordinator("west").Update(t.Context(), temporal, contract.UpdateSetTurnLimit, limit)
	require.NoError(t, err)
	assert.Equal(t, "backups: 8 at a time.", answer.Message)
	assert.Equal(t, "west/velero-queue", temporal.Update.WorkflowID)
	assert.Equal(t, contract.UpdateSetTurnLimit, temporal.Update.UpdateName)
	assert.Equal(t, []any{limit}, temporal.Update.Args)
	assert.Equal(t, client.WorkflowUpdateStageCompleted, temporal.Update.WaitForStage)
}

func TestWhatTheQueueDoesNotDoIsExplained(t *testing.T) {
	for title, test := range map[string]struct {
		err  error
		want string
	}{
		"it does not run": {serviceerror.NewNotFound("workflow not found"), "Kubernetes cluster west has no queue before Velero"},
		"it refuses": {
			temporalsdk.NewNonRetryableApplicationError("shop/x is not waiting for a turn", contract.ErrorVeleroQueueInvalid, nil),
			"shop/x is not waiting for a turn",
		},
		"no worker answers": {
			client.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded),
			"no answer within 1m10s: check that Temporal and a holdfast-worker with --cluster-id west run. The request may still take " +
				"effect: holdfast queue shows it",
		},
		"something else": {errors.New("broken"), "call the queue of Kubernetes cluster west: broken"},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := coordinator("west").Update(t.Context(), &fakeTemporal{ID: "west/velero-queue", Err: test.err}, contract.UpdateNextTurn, contract.NextTurn{})
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestALimitIsRead(t *testing.T) {
	limit, err := limitOf("8", 90*time.Minute)
	require.NoError(t, err)
	assert.Equal(t, contract.TurnLimit{Limit: 8, For: 5400}, limit)
	limit, err = limitOf("0", time.Hour)
	require.NoError(t, err)
	assert.Equal(t, contract.TurnLimit{}, limit, "back to the policy's: the duration means nothing")
}
