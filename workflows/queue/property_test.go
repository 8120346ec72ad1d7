package queue_test

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// swept is how often the watcher sends all that wait, and settleFor how long everybody has at most when nothing happens any more: at one
// turn at a time, each of them a lost end.
const (
	swept     = 10 * time.Minute
	settleFor = 8 * time.Hour
)

// happens draws an event at that time, and returns when it is over.
func (w *world) happens(t *rapid.T, at time.Duration) time.Duration {
	what := rapid.SampledFrom([]string{
		"create", "create", "create", "create", "unheard", "finish", "finish", "end unheard", "leave", "abandon", "terminate", "terminate", "stall",
		"refuse", "lose answers", "away", "continue", "lose", "limits", "policy off", "override", "next", "stale", "strange", "sweep", "lead",
	}).Draw(t, "what")
	pick := rapid.IntRange(0, 1000).Draw(t, "which")
	// one is an object like that, if there is one.
	one := func(is func(*object) bool, do func(*object)) {
		w.at(at, func() {
			var all []*object
			for _, o := range w.objects {
				if is(o) && !o.gone {
					all = append(all, o)
				}
			}
			if len(all) > 0 {
				do(all[pick%len(all)])
			}
		})
	}
	all := func(*object) bool { return true }
	active := func(o *object) bool { return o.active }
	switch what {
	case "create", "unheard":
		pool := rapid.SampledFrom([]contract.Pool{contract.PoolBackups, contract.PoolBackups, contract.PoolRestores}).Draw(t, "pool")
		namespace := rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "namespace")
		lane := rapid.SampledFrom(pool.Lanes()).Draw(t, "lane")
		w.at(at, func() {
			for range 1 + pick%3 {
				w.creates(pool, lane, fmt.Sprintf("%s-%d", namespace, len(w.objects)), what == "unheard")
			}
		})
	case "finish", "end unheard":
		one(active, func(o *object) { w.finishes(o, what != "finish") })
	case "leave":
		one(all, func(o *object) { w.leaves(o, pick%2 == 0) })
	case "terminate":
		one(func(o *object) bool { return o.flow }, w.terminated)
	case "abandon":
		one(func(o *object) bool { return o.active || o.making }, w.abandons)
	case "stall":
		one(func(o *object) bool { return o.active && !o.orphan }, w.stalls)
	case "refuse":
		w.at(at, func() { w.refused = 1 + pick%6 })
	case "lose answers":
		w.at(at, func() { w.lost = 1 + pick%3 })
	case "away":
		w.at(at, func() { w.away = errors.New("away") })
		at += time.Duration(20+pick%30)*time.Second + workflowtest.Apart
		w.at(at, func() { w.away = nil })
	case "continue":
		w.at(at, func() { w.roll = true })
	case "lose":
		w.at(at, func() { w.end = true })
		at += time.Duration(pick%30)*time.Second + workflowtest.Apart
		w.at(at, w.sweeps)
	case "limits", "policy off":
		backups, restores := rapid.IntRange(1, 4).Draw(t, "backups"), rapid.IntRange(0, 2).Draw(t, "restores")
		if what == "policy off" {
			backups = 0
		}
		w.at(at, func() { w.limits(backups, restores) })
	default:
		at = w.operates(t, what, at, pick, one)
	}
	return at
}

func (w *world) operates(
	t *rapid.T, what string, at time.Duration, pick int, one func(func(*object) bool, func(*object)),
) time.Duration {
	all := func(*object) bool { return true }
	switch what {
	case "override":
		limit, lasts := rapid.IntRange(0, 5).Draw(t, "limit"), int64(rapid.IntRange(1, 600).Draw(t, "seconds"))
		w.at(at, func() {
			w.updates(contract.UpdateSetTurnLimit, contract.TurnLimit{Pool: contract.PoolBackups, Limit: limit, For: lasts})
		})
	case "next":
		one(all, func(o *object) {
			w.updates(contract.UpdateNextTurn, contract.NextTurn{
				TurnName: contract.TurnName{Pool: o.key.Pool, Namespace: o.key.Namespace, Name: o.key.Name}, Reason: "the auditors wait",
			})
		})
	case "stale": // what was sent before, and comes again
		one(func(o *object) bool { return !o.waits }, func(o *object) {
			if w.env != nil {
				w.asks(o)
			}
		})
	case "strange":
		one(all, func(o *object) {
			key, lane := o.key, o.key
			key.UID, lane.Name = "", "x"
			w.send = append(w.send, contract.TurnNews{
				Requests: []contract.TurnRequest{{TurnKey: key}, {TurnKey: lane, Lane: 9}, {TurnKey: contract.TurnKey{Pool: "x"}}},
				Ended:    []contract.TurnKey{key, {Pool: "x"}}, Policy: w.rules.Version,
			}, contract.TurnReturn{Cluster: "west", TurnKey: o.key, Turn: o.last - 1, Waits: pick%2 == 0},
				contract.TurnReturn{Cluster: "east", TurnKey: o.key, Turn: o.last})
		})
	case "lead":
		w.at(at, w.leads)
	default:
		w.at(at, w.sweeps)
	}
	return at
}

// settles lets nothing happen any more but what must, until everybody has had a turn, and then takes the limits away.
func (w *world) settles(from time.Duration) {
	w.at(from, func() {
		w.refused, w.lost, w.away, w.slow, w.lossy = 0, 0, nil, false, false
		if w.rules.Limits[contract.PoolBackups] == 0 || w.rules.Limits[contract.PoolRestores] == 0 {
			w.limits(1, 1)
		}
	})
	over := false
	for at := from + time.Minute; at < from+settleFor; at += swept {
		w.at(at+workflowtest.Apart, func() {
			if over {
				return
			}
			w.sweeps()
			unserved := func(o *object) bool { return !o.gone && (o.waits || o.active) }
			if over = len(w.names(unserved)) == 0 && (w.env == nil || w.idle()); over {
				w.limits(0, 0)
			}
		})
	}
	w.at(from+settleFor, func() {
		if waiting := w.names(func(o *object) bool { return !o.gone && o.waits }); len(waiting) > 0 {
			w.fault("%q were lost", waiting)
		}
		if !over {
			w.fault("turns are left: %+v", w.state())
			w.limits(0, 0)
		}
	})
}

// idle reports whether nobody has a turn or waits for one.
func (w *world) idle() bool {
	for _, pool := range w.state().Pools {
		if len(pool.Turns)+len(pool.Waiting)+pool.Beyond > 0 {
			return false
		}
	}
	return true
}

// TestWhateverHappens: objects come, end and go, news are lost, repeated and late, workflows and the queue itself are terminated, limits
// change, and Temporal and the API server are away. There are never more unfinished Velero objects made with turns than the limit, no
// object has two turns at a time, everybody gets one in the end, and no turn is left.
func TestWhateverHappens(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(1, 3).Draw(t, "backups"), rapid.IntRange(0, 2).Draw(t, "restores"))
		w.chance = rand.New(rand.NewSource(rapid.Int64().Draw(t, "chance")))
		w.slow, w.lossy, w.hold = rapid.Bool().Draw(t, "slow"), rapid.Bool().Draw(t, "lossy"), false
		w.takes, w.vary = 5, 60*rapid.IntRange(0, 5).Draw(t, "vary")
		w.rules.Weights = map[string]int{"a": 2}
		var at time.Duration
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			at += time.Duration(rapid.SampledFrom([]int{0, 1, 4, 9, 25, 61, 150}).Draw(t, "later"))*time.Second + workflowtest.Apart
			at = w.happens(t, at)
		}
		w.settles(at + 2*time.Minute + workflowtest.Apart)
		if err := w.play(); err != nil {
			t.Fatal(err)
		}
		if len(w.wrong) > 0 {
			t.Log(strings.Join(w.trace, "\n"))
		}
		for _, wrong := range w.wrong {
			t.Error(wrong)
		}
		assert.Nil(t, w.env)
	})
}
