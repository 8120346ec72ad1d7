package throttle_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

func TestFirstSnapshotsAreGrantedAFewAtATime(t *testing.T) {
	tests := map[string]struct {
		limit  int
		before []string // in their first snapshot when the throttle begins
		steps  []throttleStep
		want   []string // seconds and backup
		runs   int
	}{
		"one after the other, in the order of the requests": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), releases(10*time.Second, "a"), releases(20*time.Second, "b"), releases(30*time.Second, "c"),
			},
			want: []string{"0 a", "10 b", "20 c"}, runs: 1,
		},
		"as many as the limit says": {
			limit: 2, steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), releases(10*time.Second, "b"), releases(20*time.Second, "c"), releases(21*time.Second, "a"),
			},
			want: []string{"0 a", "1 b", "10 c"}, runs: 1,
		},
		"a higher limit counts when the throttle wakes, a lower one revokes no slot": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), setsLimit(3*time.Second, 2), setsLimit(63*time.Second, 1),
				releases(100*time.Second, "a"), releases(110*time.Second, "b"), releases(120*time.Second, "c"),
			},
			want: []string{"0 a", "60 b", "110 c"}, runs: 1,
		},
		"a backup that asks again keeps its place, and a holder is granted its slot again": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), asks(3*time.Second, "b"), asks(4*time.Second, "a"),
				releases(10*time.Second, "a"), releases(20*time.Second, "b"), releases(30*time.Second, "c"),
			},
			want: []string{"0 a", "4 a", "10 b", "20 c"}, runs: 1,
		},
		"one of each namespace, over runs, and a late one waits for one of the others": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), asks(3*time.Second, "bank-a"), releases(10*time.Second, "a"),
				asks(11*time.Second, "d"), continuesAsNew(12 * time.Second), asks(13*time.Second, "shop-a"), asks(14*time.Second, "bank-b"),
				releases(20*time.Second, "b"), releases(30*time.Second, "bank-a"), releases(40*time.Second, "c"), releases(50*time.Second, "shop-a"),
				releases(60*time.Second, "bank-b"), releases(70*time.Second, "d"),
			},
			want: []string{"0 a", "10 b", "20 bank-a", "30 c", "40 shop-a", "50 bank-b", "60 d"}, runs: 2,
		},
		"one that waits no more is skipped": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), releases(3*time.Second, "b"), releases(10*time.Second, "a"), releases(20*time.Second, "c"),
			},
			want: []string{"0 a", "10 c"}, runs: 1,
		},
		"one that is in its first snapshot counts beyond the limit": {
			steps: []throttleStep{
				counts(0, "x"), counts(1*time.Second, "y"), asks(2*time.Second, "a"), releases(10*time.Second, "x"), releases(20*time.Second, "y"), releases(30*time.Second, "a"),
			},
			want: []string{"20 a"}, runs: 1,
		},
		"one that waits and is found in its first snapshot waits no more": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), counts(2*time.Second, "b"), asks(3*time.Second, "c"),
				releases(10*time.Second, "a"), releases(20*time.Second, "b"), releases(30*time.Second, "c"),
			},
			want: []string{"0 a", "20 c"}, runs: 1,
		},
		"a grant to a workflow that is gone goes to the next at once": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), dies(3*time.Second, "b"), releases(10*time.Second, "a"), releases(20*time.Second, "c"),
			},
			want: []string{"0 a", "10 c"}, runs: 1,
		},
		"the slot of a holder that is gone is kept while a start may be on its way": {
			// Found closed at 60 s; 480 s later, at the next check, none of its commands can run any more.
			steps: []throttleStep{asks(0, "a"), asks(1*time.Second, "b"), dies(2*time.Second, "a"), releases(20*time.Minute, "b")},
			want:  []string{"0 a", "540 b"}, runs: 1,
		},
		"a holder that is found gone when it is granted its slot again keeps it too": {
			steps: []throttleStep{asks(0, "a"), asks(1*time.Second, "b"), dies(2*time.Second, "a"), asks(3*time.Second, "a"), releases(20*time.Minute, "b")},
			want:  []string{"0 a", "540 b"}, runs: 1,
		},
		"a holder that came back keeps its slot": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), dies(2*time.Second, "a"), comesBack(5*time.Minute, "a"), releases(20*time.Minute, "a"), releases(30*time.Minute, "b"),
			},
			want: []string{"0 a", "1200 b"}, runs: 1,
		},
		"a holder that goes again has its time again": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), dies(2*time.Second, "a"), comesBack(7*time.Minute+1*time.Second, "a"), dies(8*time.Minute+1*time.Second, "a"), releases(30*time.Minute, "b"),
			},
			want: []string{"0 a", "1020 b"}, runs: 1,
		},
		"one that waits and is gone is dropped, and is the last when it comes back": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), dies(3*time.Second, "b"), comesBack(90*time.Second, "b"), asks(91*time.Second, "b"),
				releases(100*time.Second, "a"), releases(110*time.Second, "c"), releases(120*time.Second, "b"),
			},
			want: []string{"0 a", "100 c", "110 b"}, runs: 1,
		},
		"one that cannot be signalled delays no other, and is signalled later": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), asks(2*time.Second, "c"), happens(3*time.Second, func(w *throttleWorld) { w.mute["b"] = true }),
				releases(10*time.Second, "a"), happens(11*time.Second, func(w *throttleWorld) { delete(w.mute, "b") }),
				releases(20*time.Second, "c"), releases(30*time.Second, "b"),
			},
			want: []string{"0 a", "10 c", "20 b"}, runs: 1,
		},
		"it ends when no member is left, and starts again": {
			steps: []throttleStep{asks(0, "a"), releases(10*time.Second, "a"), asks(20*time.Second, "b"), releases(30*time.Second, "b")},
			want:  []string{"0 a", "20 b"}, runs: 2,
		},
		"continue-as-new loses no member": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*time.Second, "b"), counts(2*time.Second, "x"), continuesAsNew(3 * time.Second), asks(4*time.Second, "c"), continuesAsNew(5 * time.Second),
				releases(6*time.Second, "x"), dies(7*time.Second, "a"), continuesAsNew(3 * time.Minute), releases(20*time.Minute, "b"), releases(21*time.Minute, "c"),
			},
			want: []string{"0 a", "600 b", "1200 c"}, runs: 4,
		},
		"those that were in their first snapshot before it began count": { // Temporal's database was lost, say
			before: []string{"x"}, steps: []throttleStep{asks(0, "a"), asks(1*time.Second, "x"), releases(10*time.Second, "x"), releases(20*time.Second, "a")},
			want: []string{"0 x", "1 x", "10 a"}, runs: 1,
		},
		"what cannot be meant is ignored": {
			steps: []throttleStep{
				asks(0, "a"),
				{at: 1 * time.Second, action: "more", backup: "b"},
				asks(2*time.Second, ""), asks(3*time.Second, "c"),
				releases(10*time.Second, "a"), releases(20*time.Second, "c"),
			},
			want: []string{"0 a", "10 c"}, runs: 1,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newThrottleWorld()
			w.limit, w.before = max(test.limit, 1), test.before
			require.NoError(t, w.play(test.steps))
			assert.Equal(t, test.want, w.grants)
			assert.True(t, w.ended, "no member is left, and it runs on")
			assert.Equal(t, test.runs, w.runs)
		})
	}
}

func TestNobodyIsTakenForGoneWhoCannotBeAskedFor(t *testing.T) {
	w := newThrottleWorld()
	require.NoError(t, w.play([]throttleStep{
		asks(0, "a"), asks(1*time.Second, "b"), dies(2*time.Second, "a"),
		happens(3*time.Second, func(w *throttleWorld) { w.awayErr = errors.New("away") }), asks(10*time.Minute, "c"),
		happens(30*time.Minute, func(w *throttleWorld) { w.awayErr = nil }), releases(60*time.Minute, "b"), releases(61*time.Minute, "c"),
	}))
	require.Len(t, w.grants, 3)
	assert.Equal(t, []string{"0 a", "3600 c"}, []string{w.grants[0], w.grants[2]})
	var at int
	var backup string
	_, err := fmt.Sscan(w.grants[1], &at, &backup)
	require.NoError(t, err)
	assert.Equal(t, "b", backup)
	assert.InDelta(t, 38*60, at, 3*60, "the time of grace begins when it is known that it does not run")
}

func TestTheThrottleShowsWhoHoldsAndWhoWaits(t *testing.T) {
	w := newThrottleWorld()
	var state contract.FDBThrottleState
	var details string
	require.NoError(t, w.play([]throttleStep{
		asks(0, "west/fdbb/team/a/u"), asks(1*time.Second, "west/fdbb/team/b/u"), dies(2*time.Second, "west/fdbb/team/a/u"),
		happens(90*time.Second, func(w *throttleWorld) {
			w.mu.Unlock() // the query runs the workflow
			defer w.mu.Lock()
			answer, err := w.env.QueryWorkflow(contract.QueryState)
			require.NoError(t, err)
			require.NoError(t, answer.Get(&state))
			details = workflowtest.CurrentDetails(t, &workflowtest.Scenario{TestWorkflowEnvironment: w.env})
		}), releases(20*time.Minute, "west/fdbb/team/b/u"),
	}))
	at := w.start.Unix()
	assert.Equal(t, contract.FDBThrottleState{
		Limit:   1,
		Holders: []contract.FDBHolder{{WorkflowID: "west/fdbb/team/a/u", Namespace: "team", Since: at, ClosedSince: at + 60}},
		Waiting: []contract.FDBHolder{{WorkflowID: "west/fdbb/team/b/u", Namespace: "team", Since: at + 1}},
	}, state)
	assert.Equal(t, "**First snapshots:** 1 of at most 1 at a time; 1 wait.\n\nHave a slot:\n\n"+
		"- `west/fdbb/team/a/u` since 2026-08-01T12:00:00Z; its workflow has not run since 2026-08-01T12:01:00Z: the slot is kept "+
		"until 2026-08-01T12:09:00Z, as a start may be on its way\n\nWait, in this order:\n\n"+
		"- `west/fdbb/team/b/u` since 2026-08-01T12:00:01Z\n", details)
}

func TestASlotIsKeptAsLongAsAStartMayRun(t *testing.T) {
	assert.GreaterOrEqual(t, contract.FDBSlotGrace, contract.FDBRequestWait+contract.FDBCommandStart+contract.FDBCommandRun)
	assert.Greater(t, contract.FDBRequestTimeout, contract.FDBRequestWait+contract.FDBCommandLimit, "an answer is waited for")
}
