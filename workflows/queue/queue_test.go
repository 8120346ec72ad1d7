package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

// plays plays the steps, ends the queue, and asserts which turns were given.
func plays(t *testing.T, w *world, end time.Duration, want ...string) {
	t.Helper()
	w.at(end, func() {
		for _, o := range w.objects {
			w.leaves(o, true)
		}
		w.limits(0, 0)
	})
	require.NoError(t, w.play())
	assert.Empty(t, w.wrong)
	assert.Nil(t, w.env, "the policy gives no turns: the queue ends")
	if len(want) > 0 {
		assert.Equal(t, want, w.given)
	}
}

// creating creates objects at that second, whose names say their lanes: "b-1@2".
func (w *world) creating(second int, pool contract.Pool, names ...string) {
	w.at(time.Duration(second)*time.Second, func() {
		var all []*object
		for _, name := range names {
			lane := 0
			if at := len(name) - 2; name[at] == '@' {
				name, lane = name[:at], int(name[at+1]-'0')
			}
			all = append(all, w.creates(pool, lane, name, true))
		}
		w.asks(all...)
	})
}

// finishing ends what Velero does for them.
func (w *world) finishing(second int, names ...string) {
	w.doing(second, func() {
		for _, name := range names {
			w.finishes(w.named(name), false)
		}
	})
}

func (w *world) doing(second int, do func()) { w.at(time.Duration(second)*time.Second, do) }

const backups, restores = contract.PoolBackups, contract.PoolRestores

func TestTurnsGoRoundTheNamespacesAndLanes(t *testing.T) {
	t.Run("one after the other, and the restores by themselves", func(t *testing.T) {
		w := newWorld(1, 2)
		w.creating(0, backups, "a-1", "a-2", "b-1")
		w.creating(1, restores, "a-r1", "a-r2", "b-r3")
		w.finishing(10, "a-1")
		w.finishing(20, "b-1")
		w.finishing(30, "a-r1")
		plays(t, w, time.Minute, "0 a-1", "1 a-r1", "1 b-r3", "10 b-1", "20 a-2", "30 a-r2")
	})
	t.Run("one Backup of a namespace at a time while others wait", func(t *testing.T) {
		w := newWorld(2, 0)
		w.creating(0, backups, "a-1", "a-2", "a-3", "b-1", "b-2", "c-1")
		w.finishing(10, "b-1") // a-1 goes on: it is not a's turn, nor b's before c
		w.finishing(20, "c-1")
		w.finishing(30, "a-1")
		w.finishing(40, "a-2")
		plays(t, w, time.Minute, "0 a-1", "0 b-1", "10 c-1", "20 b-2", "30 a-2", "40 a-3")
	})
	t.Run("by hand, plans, default plans, drills, and a lower lane after four turns", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "z-0")
		w.creating(1, backups, "d-1@3", "d-2@3", "p-1@1", "o-1@2", "h-1", "h-2", "h-3", "h-4", "h-5", "h-6")
		names := []string{"z-0", "h-1", "h-2", "h-3", "h-4", "p-1", "o-1", "d-1", "h-5", "h-6", "d-2"}
		var want []string
		for at, name := range names {
			w.finishing(10*(at+1), name)
			want = append(want, fmt.Sprintf("%d %s", 10*at, name))
		}
		plays(t, w, 3*time.Minute, want...)
	})
	t.Run("as often as the weight says", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "z-0")
		w.doing(1, func() { w.rules.Weights = map[string]int{"a": 2} }) // of a namespace that is newer than the listing
		w.creating(2, backups, "a-1", "a-2", "a-3", "b-1", "b-2")
		for at, name := range []string{"z-0", "a-1", "a-2", "b-1", "a-3"} {
			w.finishing(10*(at+1), name)
		}
		plays(t, w, time.Minute, "0 z-0", "10 a-1", "20 a-2", "30 b-1", "40 a-3", "50 b-2")
	})
}

// TestSharesAreTheWeights: a namespace that always has something waiting has its weight of the turns. (Beside others none has more than one at a
// time, so that at a higher limit weights count among those without a turn.)
func TestSharesAreTheWeights(t *testing.T) {
	w := newWorld(1, 0)
	w.rules.Weights = map[string]int{"a": 3, "b": 2}
	w.hold, w.takes, w.vary, w.slow = false, 5, 10, true
	names := []string{"a", "b", "c", "d"}
	created := 0
	create := func() {
		for _, name := range names {
			created++
			w.creates(backups, 0, fmt.Sprintf("%s-%d", name, created), false)
		}
	}
	w.doing(0, func() {
		for range 10 {
			create()
		}
	})
	var goOn func()
	goOn = func() {
		create()
		w.in(30*time.Second, func() { goOn() })
	}
	w.doing(10, func() { goOn() })
	had := map[string]float64{}
	w.doing(3600, func() {
		all := 0.0
		for _, o := range w.objects {
			if o.had > 0 && !o.waits {
				had[o.key.Namespace]++
				all++
			}
		}
		for name, weight := range map[string]float64{"a": 3, "b": 2, "c": 1, "d": 1} {
			assert.InDelta(t, weight/7, had[name]/all, 0.04, "%s had %v of %v", name, had[name], all)
		}
		assert.Greater(t, all, 100.0)
		w.hold, goOn = true, func() {}
	})
	plays(t, w, time.Hour+time.Second)
}

// TestANewLimitHoldsAtOnce: also while the turns of the other pool, which had no limit before, are not known yet.
func TestANewLimitHoldsAtOnce(t *testing.T) {
	w := newWorld(2, 0)
	w.creating(0, backups, "a-1", "b-1", "c-1")
	w.doing(10, func() {
		w.limits(1, 1)
		w.creates(restores, 0, "d-r1", true)
	})
	w.finishing(20, "a-1")
	w.finishing(30, "b-1")
	w.finishing(40, "c-1")
	plays(t, w, 2*time.Minute, "0 a-1", "0 b-1", "30 c-1", "55 d-r1")
}

func TestHowTurnsEnd(t *testing.T) {
	t.Run("at the policy's timeout, whatever Velero does", func(t *testing.T) {
		w := newWorld(1, 0)
		w.rules.Timeout = 3600
		w.creating(0, backups, "a-1", "a-2")
		w.doing(3500, func() { assert.Equal(t, "a-1", w.state().Pools[0].Turns[0].Name) })
		w.doing(3595, func() { w.named("a-1").apart = true }) // it has no turn any more
		w.finishing(4000, "a-1")                              // the late end ends no other turn
		w.doing(4001, func() { assert.Equal(t, "a-2", w.state().Pools[0].Turns[0].Name) })
		plays(t, w, 2*time.Hour, "0 a-1", "3600 a-2")
	})
	t.Run("when it comes too late, and the object waits for another", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1")
		w.creating(1, backups, "a-2")
		w.doing(0, func() { w.refused = 6 }) // the turn is given when it is not usable any more
		w.finishing(60, "a-1")
		plays(t, w, time.Minute+30*time.Second, "22 a-1", "22 a-1", "60 a-2")
	})
	t.Run("when the object is refused by Temporal for ever", func(t *testing.T) {
		w := newWorld(1, 0)
		w.never = "a-1"
		w.creating(0, backups, "a-1", "a-2")
		plays(t, w, time.Minute, "1 a-2")
	})
	t.Run("when Velero stalls", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1", "a-2")
		w.doing(50, func() { w.stalls(w.named("a-1")) })
		plays(t, w, time.Minute, "0 a-1", "50 a-2")
	})
	t.Run("when Velero stalls over a loss of the queue, which then has another number for it", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1", "a-2")
		w.doing(10, func() { w.end = true })
		w.doing(20, w.sweeps)
		w.doing(100, func() { w.stalls(w.named("a-1")) })
		w.doing(150, func() { w.end = true })
		w.creating(160, backups, "a-3")
		w.finishing(300, "a-2")
		plays(t, w, 6*time.Minute, "0 a-1", "100 a-2", "300 a-3")
	})
	t.Run("when Velero has finished what was made for an object that is gone", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1", "a-2", "a-3")
		w.doing(10, func() { w.abandons(w.named("a-1")) })
		w.doing(1000, func() {
			assert.Equal(t, []string{"0 a-1"}, w.given)
			w.end = true
		})
		w.doing(1010, w.sweeps)
		w.doing(2000, func() {
			assert.Equal(t, []string{"0 a-1"}, w.given, "it counts after a loss, too")
			w.finishes(w.named("a-1"), false)
		})
		plays(t, w, time.Hour)
		assert.Equal(t, "a-2", strings.Fields(w.given[1])[1])
	})
	t.Run("when its workflow was terminated before use, and the object has another", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1")
		w.creating(1, backups, "a-2")
		w.atTurn = w.terminated
		w.doing(100, func() { assert.NotZero(t, w.state().Pools[0].Turns[0].ClosedSince, "it does not run") })
		w.finishing(200, "a-1")
		plays(t, w, 5*time.Minute, "0 a-1", "120 a-1", "200 a-2")
	})
	t.Run("when it was terminated after use it counts until Velero has finished, and news are lost", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1", "a-2")
		w.doing(5, func() { w.terminated(w.named("a-1")) })
		w.doing(1000, func() {
			assert.Equal(t, []string{"0 a-1"}, w.given)
			w.finishes(w.named("a-1"), true)
		})
		plays(t, w, 20*time.Minute, "0 a-1", "1080 a-2")
	})
	t.Run("while its object waits for Velero it is not listed", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1")
		w.doing(3000, func() { assert.Equal(t, 1, w.found); assert.Greater(t, w.counts, 40) })
		plays(t, w, time.Hour, "0 a-1")
	})
}

// TestANewLeaderLosesNoEnd: of an object whose workflow goes on the census says nothing.
func TestANewLeaderLosesNoEnd(t *testing.T) {
	w := newWorld(2, 0)
	w.creating(0, backups, "a-1", "b-1", "c-1", "d-1")
	w.doing(20, func() {
		w.finishes(w.named("a-1"), true)
		w.named("a-1").flow = true
	})
	w.doing(600, w.leads)
	w.finishing(700, "b-1")
	plays(t, w, 20*time.Minute, "0 a-1", "0 b-1", "600 c-1", "700 d-1")
}

// TestANewLeadersEndsAreReadByTheNextRun: the run that it has told continues as new before it has read the objects.
func TestANewLeadersEndsAreReadByTheNextRun(t *testing.T) {
	w := newWorld(2, 0)
	w.creating(0, backups, "a-1", "b-1", "c-1")
	w.doing(20, func() {
		w.finishes(w.named("a-1"), true)
		w.named("a-1").flow = true
	})
	w.doing(600, func() {
		w.away = errors.New("away")
		w.leads()
	})
	w.doing(610, func() { w.roll = true })
	w.doing(620, func() { w.away = nil })
	plays(t, w, 20*time.Minute, "0 a-1", "0 b-1", "622 c-1")
	assert.Len(t, w.began, 2)
}

// TestAWeightThatComesWhileObjectsAreListed: it is kept over that listing, and the next one may take it back.
func TestAWeightThatComesWhileObjectsAreListed(t *testing.T) {
	w := newWorld(1, 0)
	w.creating(0, backups, "b-1")
	w.doing(10, func() {
		w.away = errors.New("away")
		w.limits(1, 1)
	})
	w.doing(12, func() { w.rules.Weights = map[string]int{"a": 3} })
	w.creating(13, backups, "a-1")
	w.doing(14, func() { w.rules.Weights = nil })
	w.doing(20, func() { w.away = nil })
	w.doing(30, func() {
		assert.Equal(t, map[string]int{"a": 3}, w.state().Rules.Weights)
		w.limits(1, 2)
	})
	w.doing(40, func() { assert.Empty(t, w.state().Rules.Weights) })
	plays(t, w, time.Minute)
}

// TestWhoRequestsATurnWhileAPoolIsSwitchedOn: the listing has it, and it is not forgotten.
func TestWhoRequestsATurnWhileAPoolIsSwitchedOn(t *testing.T) {
	w := newWorld(1, 1)
	w.creating(0, restores, "a-r1", "b-r2")
	w.doing(10, func() { w.limits(1, 0) })
	w.at(10*time.Second+500*time.Millisecond, func() { w.limits(1, 5) })
	w.creating(20, restores, "c-r3")
	plays(t, w, 3*time.Minute, "0 a-r1", "55 b-r2", "55 c-r3")
}

// TestATurnThatComesBackAtOnceRests: whatever the reason is, it does not go to and fro as fast as signals do.
func TestATurnThatComesBackAtOnceRests(t *testing.T) {
	w := newWorld(1, 0)
	w.creating(0, backups, "a-1")
	w.atTurn = func(o *object) {
		o.flows++ // it serves nothing any more
		w.send = append(w.send, contract.TurnReturn{Cluster: "west", TurnKey: o.key, Turn: o.last, Waits: true})
	}
	plays(t, w, time.Minute, "0 a-1", "10 a-1")
}

// TestARequestDuringTheListingThatSwitchesAPoolOn: the list began before the object was created.
func TestARequestDuringTheListingThatSwitchesAPoolOn(t *testing.T) {
	w := newWorld(1, 0)
	w.creating(0, backups, "a-1")
	w.doing(10, func() {
		w.away = errors.New("away")
		w.limits(1, 2)
	})
	w.creating(20, restores, "b-r1")
	w.doing(30, func() { w.away = nil })
	plays(t, w, 3*time.Minute, "0 a-1", "32 b-r1")
}

// TestAListingThatARunLeavesIsTheNextOnes: the lower limit of a policy holds, although the run continued as new while it was read.
func TestAListingThatARunLeavesIsTheNextOnes(t *testing.T) {
	w := newWorld(3, 0)
	w.creating(0, backups, "a-1", "b-1", "c-1", "d-1", "e-1")
	w.doing(10, func() {
		w.away = errors.New("away")
		w.limits(1, 0)
	})
	w.doing(20, func() { w.roll = true })
	w.doing(30, func() { w.away = nil })
	w.finishing(100, "a-1")
	w.finishing(110, "b-1")
	w.finishing(120, "c-1")
	plays(t, w, 3*time.Minute, "0 a-1", "0 b-1", "0 c-1", "120 d-1")
	assert.Len(t, w.began, 2)
}

func TestAQueueThatWasLost(t *testing.T) {
	t.Run("pauses if somebody waits who may have a turn", func(t *testing.T) {
		w := newWorld(2, 0)
		w.creating(0, backups, "a-1", "a-2", "b-1")
		w.doing(100, func() { w.end = true; w.finishes(w.named("b-1"), true) })
		w.doing(110, w.sweeps)
		w.doing(130, func() {
			assert.Equal(t, w.start.Unix()+155, w.state().PausedUntil)
			w.creates(backups, 0, "c-1", false)
		})
		w.doing(157, func() { assert.Zero(t, w.state().PausedUntil) })
		w.finishing(200, "a-1")
		plays(t, w, 5*time.Minute, "0 a-1", "0 b-1", "155 c-1", "200 a-2")
		assert.Equal(t, []string{"0", "110"}, w.began)
	})
	t.Run("what was given before is made during the pause, and counts", func(t *testing.T) {
		w := newWorld(1, 0)
		w.creating(0, backups, "a-1", "b-1")
		w.atTurn = func(o *object) {
			w.end = true
			w.terminated(o) // in flight as below
			w.in(25*time.Second, func() { w.makes(o) })
		}
		w.doing(2, w.sweeps)
		w.finishing(100, "a-1")
		plays(t, w, 5*time.Minute, "0 a-1", "100 b-1")
	})
	t.Run("does not pause if nobody waits", func(t *testing.T) {
		w := newWorld(2, 0)
		w.creating(0, backups, "a-1")
		w.doing(100, func() { w.end = true })
		w.doing(105, func() { w.send = append(w.send, contract.TurnNews{Policy: "v1"}) })
		w.creating(110, backups, "a-2", "b-1")
		w.finishing(120, "a-1")
		plays(t, w, 5*time.Minute, "0 a-1", "110 b-1", "120 a-2")
	})
	t.Run("does not pause at its very first start", func(t *testing.T) {
		w := newWorld(2, 0)
		w.doing(50, func() { w.send = append(w.send, contract.TurnNews{Policy: "v1"}) })
		w.creating(60, backups, "a-1")
		plays(t, w, 2*time.Minute, "60 a-1")
	})
}
