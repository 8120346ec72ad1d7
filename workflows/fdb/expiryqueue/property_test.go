package expiryqueue_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

const (
	// settleEvery is how often, in the end, the turns that run finish, and settleFor for how long.
	settleEvery = 2 * time.Minute
	settleFor   = 4 * time.Hour
	// starved is how long a backup may wait for its turn then: the minimum interval, the others' turns, two checks of a workflow
	// that was lost.
	starved = time.Hour + 6*settleEvery + 15*time.Minute
)

var queueNames = []string{"a", "b", "c", "bank-d", "bank-e", "shop-f"}

// random returns a random step at that time.
func randomQueueSteps(t *rapid.T, at time.Duration) []queueStep {
	name := rapid.SampledFrom(queueNames).Draw(t, "name")
	what := rapid.SampledFrom([]string{
		"expire", "expire", "expire", "delete", "leave", "send", "finish", "finish", "finish", "close", "crash", "crash with pod",
		"refuse starts", "lose answers", "away", "continue", "lose", "lose all", "expire now", "remove", "limit", "strange",
	}).Draw(t, "what")
	// of is a backup whose turn runs, if there is one.
	of := func(w *queueWorld) contract.ObjectRef {
		refs := sortedRefs(w.flows)
		if len(refs) == 0 {
			return contract.ObjectRef{}
		}
		return refs[int(name[len(name)-1])%len(refs)]
	}
	one := func(do func(*queueWorld)) []queueStep { return []queueStep{{at, do}} }
	switch what {
	case "expire", "delete":
		return one(func(w *queueWorld) { w.wants(name, contract.FDBJob(what)) })
	case "leave":
		return one(func(w *queueWorld) { w.leaves(name) })
	case "send":
		return one((*queueWorld).sendAll)
	case "finish":
		outcome := rapid.SampledFrom([]contract.FDBTurnOutcome{
			contract.FDBTurnDone, contract.FDBTurnRefused, contract.FDBTurnNothing, contract.FDBTurnNotYet, contract.FDBTurnFailed,
		}).Draw(t, "outcome")
		return one(func(w *queueWorld) { w.finishes(of(w), outcome) })
	case "close":
		return one(func(w *queueWorld) { w.closes(of(w)) })
	case "crash", "crash with pod":
		return one(func(w *queueWorld) { w.crashes(of(w), what != "crash") })
	case "refuse starts":
		return one(func(w *queueWorld) { w.refused = 3 })
	case "lose answers":
		return one(func(w *queueWorld) { w.lost = 2 })
	case "away":
		return []queueStep{
			{at, func(w *queueWorld) { w.away = fmt.Errorf("away") }},
			{at + 30*time.Second, func(w *queueWorld) { w.away = nil }},
		}
	case "continue":
		return one(func(w *queueWorld) { w.roll = true })
	case "lose", "lose all":
		return []queueStep{
			{at, func(w *queueWorld) {
				w.lose = true
				if what == "lose all" {
					clear(w.flows)
				}
			}},
			{at + 30*time.Second, (*queueWorld).sendAll},
		}
	case "strange":
		return one(func(w *queueWorld) {
			w.send = append(w.send, contract.FDBTurnReport{Ref: backupRef(name), Turn: 1, Ended: true},
				contract.FDBQueueRequest{Cluster: "east", Ref: backupRef("x"), Job: contract.FDBJobExpire},
				contract.FDBQueueRequest{Cluster: "west", Job: contract.FDBJobExpire},
				contract.FDBQueueRequest{Cluster: "west", Ref: backupRef("x"), Job: "burn"})
		})
	case "expire now":
		return one(func(w *queueWorld) { w.asks(contract.UpdateExpireNow, named(name)) })
	case "remove":
		return one(func(w *queueWorld) {
			if object := w.objects[name]; object != nil && w.env != nil {
				object.out = true
			}
			w.asks(contract.UpdateRemoveEntry, named(name))
		})
	}
	limit := rapid.IntRange(0, 3).Draw(t, "limit")
	return one(func(w *queueWorld) {
		if w.env != nil {
			w.limitSet = limit
		}
		w.asks(contract.UpdateSetExpiryLimit, contract.FDBQueueLimit{Limit: limit})
	})
}

// nobodyLost compares the queue with the backups that are to be in it. Reports are drained before requests, so that no backup is lost: a
// request from before the end of a deletion gives the object one more turn, which finds that it is gone. The queue ends without it: play.
func nobodyLost(w *queueWorld) {
	var want, got []string
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		if object := w.objects[name]; !object.out {
			want = append(want, fmt.Sprintf("%s %s %s", object.job, name, object.ref.UID))
		}
	}
	if w.env != nil {
		for _, entry := range w.state().Entries {
			if w.gone[entry.Ref] {
				continue
			}
			got = append(got, fmt.Sprintf("%s %s %s", entry.Job, entry.Ref.Name, entry.Ref.UID))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		w.fault("in the queue are %q, and should be %q", got, want)
	}
}

// settleQueue lets every running turn finish soon, for long enough that every backup has several, and then lets all leave.
func settleQueue(from time.Duration) []queueStep {
	steps := []queueStep{
		{from, nobodyLost},
		{from + time.Second, func(w *queueWorld) {
			w.refused, w.lost = 0, 0
			w.sendAll()
			w.send = append(w.send, contract.FDBQueueRequest{Cluster: "west", Ref: backupRef("x")}) // one without a policy
		}},
	}
	at := from + settleEvery
	for ; at < from+settleFor; at += settleEvery {
		steps = append(steps, queueStep{at, func(w *queueWorld) { w.finishAll(contract.FDBTurnDone) }})
	}
	to := at
	steps = append(steps, queueStep{at, func(w *queueWorld) { nobodyStarved(w, from, to) }})
	steps = append(steps, queueStep{at + time.Second, func(w *queueWorld) {
		for _, name := range queueNames {
			w.leaves(name)
		}
	}})
	for range 10 {
		at += settleEvery
		steps = append(steps, queueStep{at, func(w *queueWorld) { w.finishAll(contract.FDBTurnDone) }})
	}
	return steps
}

// nobodyStarved judges the times at which the turns finished.
func nobodyStarved(w *queueWorld, from, to time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		object := w.objects[name]
		if object.job == contract.FDBJobDelete {
			w.fault("%s is still there, and waits for its deletion since before %s", name, from)
			continue
		}
		last := from
		for _, begun := range append(slices.Clone(w.begun[object.ref]), to) {
			if begun-last > starved {
				w.fault("%s had no turn from %s to %s", name, last, begun)
			}
			last = max(last, begun)
		}
	}
}

// TestWhateverHappensTurnsKeepTheLimitAndNobodyIsLost: no matter what happens to the queue, the turns and the pods, there are never more
// pods than the limit, and never two of a backup. Every backup in the queue has its turns, and stays in it as long as it should.
func TestWhateverHappensTurnsKeepTheLimitAndNobodyIsLost(t *testing.T) {
	for limit := range 3 {
		t.Run(fmt.Sprintf("at most %d at a time", limit+1), func(t *testing.T) {
			property.Check(t, func(t *rapid.T) {
				w := newQueueWorld(limit + 1)
				var steps []queueStep
				// No two events have the same milliseconds: what comes at the very moment when a run completes is lost in the test
				// environment, and is not by Temporal.
				var at time.Duration
				for range rapid.IntRange(1, 40).Draw(t, "events") {
					at += time.Duration(rapid.SampledFrom([]int{1, 5, 31, 61, 301, 601, 1801}).Draw(t, "later"))*time.Second + workflowtest.Apart
					for _, step := range randomQueueSteps(t, at) {
						steps = append(steps, step)
						at = step.at
					}
				}
				if err := w.play(append(steps, settleQueue(at+5*time.Minute+workflowtest.Apart)...)); err != nil {
					t.Fatal(err)
				}
				for _, wrong := range w.wrong {
					t.Error(wrong)
				}
				assert.Nil(t, w.env)
				assert.Empty(t, w.pods, "a turn was forgotten")
			})
		})
	}
}
