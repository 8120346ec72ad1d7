package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/contract"
)

func (w *world) next(second int, name string) {
	w.doing(second, func() { w.wishes(name) })
}

func (w *world) wishes(name string) {
	namespace, _, _ := strings.Cut(name, "-")
	w.updates(contract.UpdateNextTurn, contract.NextTurn{
		TurnName: contract.TurnName{Pool: backups, Namespace: namespace, Name: name}, Reason: "the auditors wait",
	})
}

func TestAnOperatorSetsTheLimitForATime(t *testing.T) {
	w := newWorld(2, 0)
	set := func(second, limit int, lasts int64) {
		w.doing(second, func() {
			w.updates(contract.UpdateSetTurnLimit, contract.TurnLimit{Pool: backups, Limit: limit, For: lasts})
		})
	}
	w.creating(0, backups, "a-1", "b-1", "c-1", "d-1", "e-1", "f-1")
	set(10, 4, 7200)
	w.doing(20, func() { w.roll = true })
	w.finishing(3600, "a-1")
	w.finishing(7300, "b-1") // three run, and two may
	w.doing(7301, func() { assert.Nil(t, w.state().Pools[0].Override) })
	set(7400, 1, 60)
	set(7410, 0, 0)
	w.finishing(7500, "c-1", "d-1")
	plays(t, w, 3*time.Hour, "0 a-1", "0 b-1", "10 c-1", "10 d-1", "3600 e-1", "7500 f-1")
	assert.Equal(t, []string{
		"backups: 4 at a time until 2026-08-01T14:00:10Z, and then 2 as the policy says.",
		"backups: 1 at a time until 2026-08-01T14:04:20Z, and then 2 as the policy says. The 3 running turns continue; the next begins when fewer than 1 run.",
		"backups: 2 at a time, as the policy says. The 3 running turns continue; the next begins when fewer than 2 run.",
	}, w.answers)
}

// TestALimitThatIsSetWhileAQueuePausesHolds: it is answered when the policy is known.
func TestALimitThatIsSetWhileAQueuePausesHolds(t *testing.T) {
	w := newWorld(1, 0)
	w.creating(0, backups, "a-1", "b-1", "c-1")
	w.doing(100, func() { w.end = true })
	w.doing(110, w.sweeps)
	w.doing(120, func() { w.updates(contract.UpdateSetTurnLimit, contract.TurnLimit{Pool: backups, Limit: 2, For: 600}) })
	w.next(121, "c-1")
	w.doing(154, func() { assert.Empty(t, w.answers) })
	plays(t, w, 3*time.Minute, "0 a-1", "155 c-1")
	assert.Equal(t, []string{ // the SDK runs the later Update first
		"c/c-1 has the next turn: 1 of 1 run, and it begins when fewer do.",
		"backups: 2 at a time until 2026-08-01T12:12:35Z, and then 1 as the policy says.",
	}, w.answers)
}

func TestAnOperatorGivesTheNextTurn(t *testing.T) {
	w := newWorld(1, 0)
	w.creating(0, backups, "a-1", "a-2", "a-3", "b-1", "b-2")
	w.next(10, "a-3")
	w.next(11, "a-1")
	w.next(12, "a-9")
	w.finishing(20, "a-1")
	w.finishing(30, "a-3")
	plays(t, w, time.Minute, "0 a-1", "20 a-3", "30 b-1")
	assert.Equal(t, []string{
		"a/a-3 has the next turn: 1 of 1 run, and it begins when fewer do.",
		"refused: a/a-1 has had its turn since 2026-08-01T12:00:00Z",
		"refused: a/a-9 is not waiting for a turn in Kubernetes cluster west: a NonAdminBackup waits while its condition Queued has reason " +
			"WaitingForTurn; see what 'holdfast queue' shows",
	}, w.answers)
}

// TestWhoIsBeyondTheFrontIsFoundByItsName: the queue does not carry it. A wish that was refused is not fulfilled later.
func TestWhoIsBeyondTheFrontIsFoundByItsName(t *testing.T) {
	w := newWorld(1, 0)
	w.doing(0, func() {
		for n := range 1500 {
			w.creates(backups, 0, fmt.Sprintf("a-%04d", n), true)
		}
		w.sweeps()
	})
	w.next(10, "a-1400")
	w.next(11, "a-9999")
	w.doing(20, func() {
		w.away = fmt.Errorf("away")
		w.wishes("a-1300")
	})
	w.doing(100, func() { w.away = nil })
	w.doing(150, func() { assert.InDelta(t, 1500-1, len(w.state().Pools[0].Waiting)+w.state().Pools[0].Beyond, 1) })
	w.finishing(200, w0)
	w.finishing(210, "a-1400")
	plays(t, w, 5*time.Minute, "0 "+w0, "200 a-1400", "210 a-0001")
	assert.Equal(t, []string{
		"a/a-1400 has the next turn: 1 of 1 run, and it begins when fewer do.",
		"failed: a/a-9999 is not waiting for a turn in Kubernetes cluster west: a NonAdminBackup waits while its condition Queued has reason " +
			"WaitingForTurn; see what 'holdfast queue' shows",
		"failed: the objects could not be listed within 1m0s: see the pending activity of workflow west/velero-queue, and try again" +
			"",
	}, w.answers)
}

const w0 = "a-0000"

func TestWhatUpdatesRefuse(t *testing.T) {
	name := contract.TurnName{Pool: backups, Namespace: "a", Name: "a-1"}
	next := func(change func(*contract.NextTurn)) contract.NextTurn {
		in := contract.NextTurn{TurnName: name, Reason: "why"}
		change(&in)
		return in
	}
	tests := []struct {
		update string
		in     any
		want   string
	}{
		{contract.UpdateNextTurn, next(func(n *contract.NextTurn) { n.Name = "" }), "namespace and name: must be those of a NonAdminBackup"},
		{
			contract.UpdateNextTurn, next(func(n *contract.NextTurn) { n.Namespace, n.Pool = "", restores }),
			"namespace and name: must be those of a NonAdminRestore",
		},
		{contract.UpdateNextTurn, next(func(n *contract.NextTurn) { n.Reason = "" }), "reason: must be set; it stays in the history of the queue"},
		{
			contract.UpdateNextTurn, next(func(n *contract.NextTurn) { n.Reason = strings.Repeat("x", 501) }),
			"reason: must have at most 500 bytes, has 501",
		},
		{contract.UpdateNextTurn, next(func(n *contract.NextTurn) { n.Pool = "x" }), `pool: must be backups or restores, not "x"`},
		{
			contract.UpdateNextTurn, next(func(n *contract.NextTurn) { n.Pool = restores }),
			"the policy sets no limit for restores in Kubernetes cluster west: Velero is handed all of them at once. Set queue.maxActiveRestores in key holdfast of the policy first",
		},
		{
			contract.UpdateSetTurnLimit,
			contract.TurnLimit{Pool: backups, Limit: -1},
			"limit: must be a number from 0 to 200, not -1; 0 restores the policy's",
		},
		{
			contract.UpdateSetTurnLimit,
			contract.TurnLimit{Pool: backups, Limit: 201, For: 60},
			"limit: must be a number from 0 to 200, not 201; 0 restores the policy's",
		},
		{
			contract.UpdateSetTurnLimit,
			contract.TurnLimit{Pool: backups, Limit: 1},
			"for: must be a duration of at most 168h0m0s; a lasting limit belongs into the policy",
		},
		{
			contract.UpdateSetTurnLimit,
			contract.TurnLimit{Pool: backups, Limit: 1, For: 7*24*3600 + 1},
			"for: must be a duration of at most 168h0m0s; a lasting limit belongs into the policy",
		},
		{contract.UpdateSetTurnLimit, contract.TurnLimit{Pool: "", Limit: 1, For: 1}, `pool: must be backups or restores, not ""`},
		{
			contract.UpdateSetTurnLimit,
			contract.TurnLimit{Pool: restores, Limit: 1, For: 1},
			"the policy sets no limit for restores in Kubernetes cluster west: Velero is handed all of them at once. Set queue.maxActiveRestores in key holdfast of the policy first",
		},
	}
	w := newWorld(1, 0)
	w.creating(0, backups, "a-0", "a-1")
	var want []string
	for n, test := range tests {
		w.doing(1+n, func() { w.updates(test.update, test.in) })
		want = append(want, "refused: "+test.want)
	}
	plays(t, w, time.Minute, "0 a-0")
	assert.Equal(t, want, w.answers)
}

func TestThePolicyTakesTheLimitAwayAndBringsItBack(t *testing.T) {
	t.Run("of all", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1", "a-2", "b-1")
		w.doing(10, func() { w.limits(0, 0) })
		w.doing(30, func() {
			assert.Nil(t, w.env, "it ends")
			assert.Len(t, w.names(func(o *object) bool { return o.active }), 3, "Velero is handed all of them")
			w.limits(2, 0)
		})
		w.creating(40, backups, "c-1")
		w.finishing(50, "a-1")
		w.finishing(60, "b-1")
		plays(t, w, 2*time.Minute, "0 a-1", "60 c-1")
	})
	t.Run("of backups, while restores go on", func(t *testing.T) {
		w := newWorld(2, 1)
		w.creating(0, backups, "a-1", "b-1", "c-1")
		w.creating(0, restores, "a-r1", "b-r2")
		w.doing(10, func() { w.limits(0, 1) })
		w.creating(20, backups, "d-1")
		w.doing(30, func() { w.limits(1, 1) })
		w.creating(31, backups, "e-1")
		w.finishing(40, "a-r1")
		w.finishing(100, "a-1", "b-1", "c-1")
		w.finishing(110, "d-1")
		plays(t, w, 3*time.Minute, "0 a-1", "0 b-1", "0 a-r1", "40 b-r2", "110 e-1")
	})
}
