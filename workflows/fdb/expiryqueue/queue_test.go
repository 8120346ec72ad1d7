package expiryqueue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

func wantsIn(at time.Duration, job contract.FDBJob, names ...string) queueStep {
	return queueStep{at, func(w *queueWorld) {
		for _, name := range names {
			w.wants(name, job)
		}
	}}
}

func finishIn(at time.Duration, name string, outcome contract.FDBTurnOutcome) queueStep {
	return queueStep{at, func(w *queueWorld) { w.finishes(backupRef(name), outcome) }}
}

// goneAt lets all leave, so that the queue ends.
func goneAt(at time.Duration) []queueStep {
	return []queueStep{{at, func(w *queueWorld) {
		for _, name := range slices.Sorted(maps.Keys(w.objects)) {
			w.leaves(name)
		}
	}}, {at + time.Second, func(w *queueWorld) { w.finishAll(contract.FDBTurnNothing) }}}
}

func TestTurnsBeginInTheQueuesOrder(t *testing.T) {
	done, notYet := contract.FDBTurnDone, contract.FDBTurnNotYet
	tests := map[string]struct {
		limit int
		world func(*queueWorld)
		steps []queueStep
		want  []string
	}{
		"one after the other, and again after an hour": {
			steps: []queueStep{
				wantsIn(0, contract.FDBJobExpire, "a", "b"), finishIn(10*time.Second, "a", done), finishIn(20*time.Second, "b", done),
				finishIn(3700*time.Second, "a", done),
			},
			want: []string{"0 expire a", "10 expire b", "3600 expire a", "3700 expire b"},
		},
		"as many as the limit says": {
			limit: 3, steps: []queueStep{wantsIn(0, contract.FDBJobExpire, "a", "b", "c", "d"), finishIn(10*time.Second, "b", done)},
			want: []string{"0 expire a", "0 expire b", "0 expire c", "10 expire d"},
		},
		"one of each namespace, over runs, and a late one waits for one turn of the others": {
			steps: []queueStep{
				wantsIn(0, contract.FDBJobExpire, "a", "b", "c", "bank-a"), finishIn(10*time.Second, "a", done),
				wantsIn(15*time.Second, contract.FDBJobExpire, "d", "e", "shop-a"),
				{16 * time.Second, func(w *queueWorld) { w.roll = true }},
				finishIn(20*time.Second, "bank-a", done), finishIn(30*time.Second, "b", done), finishIn(40*time.Second, "shop-a", done), finishIn(50*time.Second, "c", done),
			},
			want: []string{"0 expire a", "10 expire bank-a", "20 expire b", "30 expire shop-a", "40 expire c", "50 expire d"},
		},
		"deletions first, one of each namespace, and an expiration after four": {
			steps: []queueStep{
				wantsIn(0, contract.FDBJobExpire, "a", "b", "c"), wantsIn(5*time.Second, contract.FDBJobDelete, "c", "d", "e", "f", "shop-a"),
				{6 * time.Second, func(w *queueWorld) { w.roll = true }},
				finishIn(10*time.Second, "a", done), finishIn(20*time.Second, "c", done), finishIn(30*time.Second, "shop-a", done),
				{31 * time.Second, func(w *queueWorld) { w.roll = true }},
				finishIn(40*time.Second, "d", done), finishIn(50*time.Second, "e", done), finishIn(60*time.Second, "b", done),
			},
			want: []string{"0 expire a", "10 delete c", "20 delete shop-a", "30 delete d", "40 delete e", "50 expire b", "60 delete f"},
		},
		"what could not be done is tried again after the retry interval": {
			steps: []queueStep{wantsIn(0, contract.FDBJobExpire, "a"), finishIn(10*time.Second, "a", notYet)},
			want:  []string{"0 expire a", "610 expire a"},
		},
		"the data of a deleted object go as soon as its turn has ended": {
			steps: []queueStep{
				wantsIn(0, contract.FDBJobExpire, "a"), wantsIn(5*time.Second, contract.FDBJobDelete, "a"), finishIn(10*time.Second, "a", done),
				finishIn(20*time.Second, "a", done),
			},
			want: []string{"0 expire a", "10 delete a"},
		},
		"pods that are found are adopted, and count": { // Temporal's database was lost, say
			world: func(w *queueWorld) {
				w.wants("a", contract.FDBJobExpire)
				w.wants("b", contract.FDBJobExpire)
				w.pods[backupRef("b")] = queuePod{turn: w.start.Unix() - 100, job: contract.FDBJobExpire}
			},
			steps: []queueStep{finishIn(10*time.Second, "b", done), finishIn(20*time.Second, "a", done), finishIn(3600*time.Second, "b", done)},
			want:  []string{"0 expire b again", "10 expire a", "3500 expire b", "3610 expire a"},
		},
		"a pod that is found in termination counts until its turn says that nothing else is left": {
			world: func(w *queueWorld) {
				w.wants("a", contract.FDBJobExpire)
				w.pods[backupRef("b")] = queuePod{turn: w.start.Unix() - 100, job: contract.FDBJobExpire, terminating: true}
			},
			steps: []queueStep{
				{10 * time.Second, func(w *queueWorld) { w.closes(backupRef("b")) }}, finishIn(20*time.Second, "a", done), finishIn(30*time.Second, "b", done),
			},
			want: []string{"0 expire b again", "10 expire a"},
		},
		"a backup whose last turn is known waits as long as the others": {
			world: func(w *queueWorld) {
				w.wants("a", contract.FDBJobExpire)
				w.ended[queueTurn{backupRef("a"), w.start.Unix() - 600}] = true
			},
			steps: []queueStep{finishIn(3010*time.Second, "a", done)},
			want:  []string{"3000 expire a"},
		},
		"a turn that Temporal never accepts gives its place back": {
			world: func(w *queueWorld) { w.never = "a" },
			steps: []queueStep{wantsIn(0, contract.FDBJobExpire, "a", "b"), finishIn(10*time.Second, "b", done)},
			want:  []string{"0 never a", "0 expire b", "3600 never a"},
		},
		"a turn that was lost is started again, and holds its place": {
			steps: []queueStep{
				wantsIn(0, contract.FDBJobExpire, "a", "b"),
				{5 * time.Second, func(w *queueWorld) { w.crashes(backupRef("a"), false) }},
				finishIn(700*time.Second, "a", done),
			},
			want: []string{"0 expire a", "660 expire a again", "700 expire b"},
		},
		"a turn that is started after some tries": {
			world: func(w *queueWorld) { w.refused = 3 },
			steps: []queueStep{wantsIn(0, contract.FDBJobExpire, "a"), finishIn(10*time.Second, "a", done)},
			want:  []string{"7 expire a again"},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newQueueWorld(max(test.limit, 1))
			if test.world != nil {
				test.world(w)
			}
			require.NoError(t, w.play(append(test.steps, goneAt(2*time.Hour-time.Second)...)))
			require.GreaterOrEqual(t, len(w.order), len(test.want), w.order)
			assert.Equal(t, test.want, w.order[:len(test.want)])
			assert.Empty(t, w.wrong)
			assert.Nil(t, w.env, "no member is left, and it runs on")
		})
	}
}

// A request that arrives during the last step before an end, or a continue-as-new, is not lost.
func TestWhatComesInTheLastActivityCounts(t *testing.T) {
	w := newQueueWorld(1)
	w.wants("a", contract.FDBJobExpire)
	w.refused = 3 // the turn is started after 1 + 2 + 4 seconds: until then the queue has no eye for what comes
	require.NoError(t, w.play(append([]queueStep{
		{2 * time.Second, func(w *queueWorld) { w.roll = true }},
		{3 * time.Second, func(w *queueWorld) { w.leaves("a"); w.wants("b", contract.FDBJobDelete) }},
		{100 * time.Second, func(w *queueWorld) { w.finishAll(contract.FDBTurnDone) }},
		{110 * time.Second, nobodyLost},
		{120 * time.Second, func(w *queueWorld) { w.finishAll(contract.FDBTurnDone) }},
		{130 * time.Second, nobodyLost},
	}, goneAt(time.Hour)...)))
	assert.Empty(t, w.wrong)
	assert.Len(t, w.order, 2, w.order)
	assert.Contains(t, w.order[1], "100 delete b")
	assert.Equal(t, 2, w.runs)
}

func TestPeopleSteerTheQueue(t *testing.T) {
	refused := "refused: "
	tests := map[string]struct {
		update string
		in     any
		want   string // a part of the answer
		order  []string
	}{
		"one that waits comes first": {
			contract.UpdateExpireNow, named("c"),
			"team/c is first in the queue. Its turn begins when one of the 1 running turns has ended (at most 1 at a time).",
			[]string{"0 expire a", "20 expire c"},
		},
		"one whose turn runs has another": {
			contract.UpdateExpireNow, named("a"),
			"team/a is first in the queue. Its current turn has run since 2026-08-01T12:00:00Z; the next begins when that has ended.",
			[]string{"0 expire a", "20 expire a"},
		},
		"an unknown one": {
			contract.UpdateExpireNow, named("x"), refused + "team/x is not in the queue of Kubernetes cluster west. A FoundationDBBackup " +
				"is in it if it has an expiry policy", []string{"0 expire a", "20 expire b"},
		},
		"one without a name": {
			contract.UpdateRemoveEntry,
			contract.FDBQueueName{Namespace: "team"},
			refused + "namespace and name: must be those of a FoundationDBBackup",
			[]string{"0 expire a", "20 expire b"},
		},
		"one that waits goes": {
			contract.UpdateRemoveEntry, named("b"), "team/b is out of the queue until it asks again: when its object changes, its " +
				"workflow starts again, or an hour has passed.", []string{"0 expire a", "20 expire c"},
		},
		"one whose turn runs goes": {
			contract.UpdateRemoveEntry, named("a"), " Its turn, which has run since 2026-08-01T12:00:00Z, continues.",
			[]string{"0 expire a", "20 expire b"},
		},
		"more at a time": {
			contract.UpdateSetExpiryLimit,
			contract.FDBQueueLimit{Limit: 2},
			"At most 2 may run at a time for as long as there is a queue.",
			[]string{"0 expire a", "10 expire b", "20 expire c"},
		},
		"as the flag says": {
			contract.UpdateSetExpiryLimit,
			contract.FDBQueueLimit{},
			"At most 1 may run at a time, as --fdb-expiry-concurrency says.",
			[]string{"0 expire a", "20 expire b"},
		},
		"too many": {
			contract.UpdateSetExpiryLimit,
			contract.FDBQueueLimit{Limit: 101},
			refused + "limit: must be a number from 0 to 100, not 101",
			[]string{"0 expire a", "20 expire b"},
		},
		"less than none": {
			contract.UpdateSetExpiryLimit,
			contract.FDBQueueLimit{Limit: -1},
			refused + "limit: must be a number from 0 to 100, not -1",
			[]string{"0 expire a", "20 expire b"},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newQueueWorld(1)
			require.NoError(t, w.play(append([]queueStep{
				wantsIn(0, contract.FDBJobExpire, "a", "b", "c"),
				{10 * time.Second, func(w *queueWorld) {
					if limit, ok := test.in.(contract.FDBQueueLimit); ok && limit.Limit == 2 {
						w.limitSet = 2
					}
					w.asks(test.update, test.in)
				}},
				finishIn(20*time.Second, "a", contract.FDBTurnDone),
			}, goneAt(time.Minute)...)))
			require.Len(t, w.answers, 1)
			assert.Contains(t, w.answers[0], test.want)
			require.GreaterOrEqual(t, len(w.order), len(test.order))
			assert.Equal(t, test.order, w.order[:len(test.order)])
			assert.Empty(t, w.wrong)
		})
	}
}

func TestALowerLimitEndsNoTurn(t *testing.T) {
	w := newQueueWorld(2)
	require.NoError(t, w.play(append([]queueStep{
		wantsIn(0, contract.FDBJobExpire, "a", "b", "c"),
		{10 * time.Second, func(w *queueWorld) {
			w.limitSet = 1
			w.asks(contract.UpdateSetExpiryLimit, contract.FDBQueueLimit{Limit: 1})
		}},
		{11 * time.Second, func(w *queueWorld) { w.roll = true }}, // the limit that was set is kept
		finishIn(20*time.Second, "a", contract.FDBTurnDone), finishIn(30*time.Second, "b", contract.FDBTurnDone),
	}, goneAt(time.Minute)...)))
	assert.Equal(t, []string{"At most 1 may run at a time for as long as there is a queue. The 2 running turns continue; the next begins when fewer than 1 run."}, w.answers)
	assert.Equal(t, []string{"0 expire a", "0 expire b", "30 expire c"}, w.order)
	assert.Empty(t, w.wrong)
}

func TestTheQueueShowsWhoRunsAndWhoWaits(t *testing.T) {
	w := newQueueWorld(1)
	var state contract.FDBExpiryQueueState
	var details string
	require.NoError(t, w.play(append([]queueStep{
		wantsIn(0, contract.FDBJobExpire, "a", "b"), finishIn(10*time.Second, "a", contract.FDBTurnRefused),
		wantsIn(11*time.Second, contract.FDBJobDelete, "c"),
		{20 * time.Second, func(w *queueWorld) { w.closes(backupRef("b")) }},
		{30 * time.Second, func(w *queueWorld) {
			state = w.state()
			w.mu.Unlock()
			defer w.mu.Lock()
			details = workflowtest.CurrentDetails(t, &workflowtest.Scenario{TestWorkflowEnvironment: w.env})
		}},
	}, goneAt(time.Minute)...)))
	at := w.start.Unix()
	assert.Equal(t, contract.FDBExpiryQueueState{
		Limit: 1,
		Turns: []contract.FDBTurn{
			{Ref: backupRef("b"), Job: contract.FDBJobExpire, Turn: at + 10, Closing: true},
			{Ref: backupRef("c"), Job: contract.FDBJobDelete, Turn: at + 20},
		},
		Entries: []contract.FDBQueueEntry{
			{Ref: backupRef("c"), Job: contract.FDBJobDelete, NotBefore: at + 620, Last: at + 20},
			{Ref: backupRef("a"), Job: contract.FDBJobExpire, NotBefore: at + 3600, Last: at, Outcome: contract.FDBTurnRefused},
			{Ref: backupRef("b"), Job: contract.FDBJobExpire, NotBefore: at + 3610, Last: at + 10},
		},
	}, state)
	assert.Equal(t, strings.Join([]string{
		"**Expirations and deletions:** 1 of at most 1 at a time; 3 in the queue.",
		"", "Run:", "",
		"- `team/b` (expire) since 2026-08-01T12:00:10Z; its pod is terminating and does not count",
		"- `team/c` (delete) since 2026-08-01T12:00:20Z",
		"", "Next turns, in this order:", "",
		"- `team/c` (delete) not before 2026-08-01T12:10:20Z; last turn 2026-08-01T12:00:20Z",
		"- `team/a` (expire) not before 2026-08-01T13:00:00Z; last turn 2026-08-01T12:00:00Z: Refused",
		"- `team/b` (expire) not before 2026-08-01T13:00:10Z; last turn 2026-08-01T12:00:10Z", "",
	}, "\n"), details)
}
