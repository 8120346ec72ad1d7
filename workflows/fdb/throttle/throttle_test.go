package throttle_test

import (
	"errors"
	"fmt"
	"testing"

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
		"one after the other, in the order of asking": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), releases(10*workflowtest.Sec, "a"), releases(20*workflowtest.Sec, "b"), releases(30*workflowtest.Sec, "c"),
			},
			want: []string{"0 a", "10 b", "20 c"}, runs: 1,
		},
		"as many as the limit says": {
			limit: 2, steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), releases(10*workflowtest.Sec, "b"), releases(20*workflowtest.Sec, "c"), releases(21*workflowtest.Sec, "a"),
			},
			want: []string{"0 a", "1 b", "10 c"}, runs: 1,
		},
		"a higher limit counts when the throttle wakes, a lower one takes nothing back": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), setsLimit(3*workflowtest.Sec, 2), setsLimit(63*workflowtest.Sec, 1),
				releases(100*workflowtest.Sec, "a"), releases(110*workflowtest.Sec, "b"), releases(120*workflowtest.Sec, "c"),
			},
			want: []string{"0 a", "60 b", "110 c"}, runs: 1,
		},
		"who asks again keeps its place, and who holds is told again": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), asks(3*workflowtest.Sec, "b"), asks(4*workflowtest.Sec, "a"),
				releases(10*workflowtest.Sec, "a"), releases(20*workflowtest.Sec, "b"), releases(30*workflowtest.Sec, "c"),
			},
			want: []string{"0 a", "4 a", "10 b", "20 c"}, runs: 1,
		},
		"one of each namespace, over runs, and who comes late waits for one of the others": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), asks(3*workflowtest.Sec, "bank-a"), releases(10*workflowtest.Sec, "a"),
				asks(11*workflowtest.Sec, "d"), continuesAsNew(12 * workflowtest.Sec), asks(13*workflowtest.Sec, "shop-a"), asks(14*workflowtest.Sec, "bank-b"),
				releases(20*workflowtest.Sec, "b"), releases(30*workflowtest.Sec, "bank-a"), releases(40*workflowtest.Sec, "c"), releases(50*workflowtest.Sec, "shop-a"),
				releases(60*workflowtest.Sec, "bank-b"), releases(70*workflowtest.Sec, "d"),
			},
			want: []string{"0 a", "10 b", "20 bank-a", "30 c", "40 shop-a", "50 bank-b", "60 d"}, runs: 2,
		},
		"one that waits no more is passed over": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), releases(3*workflowtest.Sec, "b"), releases(10*workflowtest.Sec, "a"), releases(20*workflowtest.Sec, "c"),
			},
			want: []string{"0 a", "10 c"}, runs: 1,
		},
		"one that is in its first snapshot counts beyond the limit": {
			steps: []throttleStep{
				counts(0, "x"), counts(1*workflowtest.Sec, "y"), asks(2*workflowtest.Sec, "a"), releases(10*workflowtest.Sec, "x"), releases(20*workflowtest.Sec, "y"), releases(30*workflowtest.Sec, "a"),
			},
			want: []string{"20 a"}, runs: 1,
		},
		"one that waits and is found in its first snapshot waits no more": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), counts(2*workflowtest.Sec, "b"), asks(3*workflowtest.Sec, "c"),
				releases(10*workflowtest.Sec, "a"), releases(20*workflowtest.Sec, "b"), releases(30*workflowtest.Sec, "c"),
			},
			want: []string{"0 a", "20 c"}, runs: 1,
		},
		"a grant that finds nobody is passed on at once": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), dies(3*workflowtest.Sec, "b"), releases(10*workflowtest.Sec, "a"), releases(20*workflowtest.Sec, "c"),
			},
			want: []string{"0 a", "10 c"}, runs: 1,
		},
		"the slot of a holder that is gone is kept while a start may be on its way": {
			// Found closed at 60 s; 480 s later, at the next look, nothing of it can run any more.
			steps: []throttleStep{asks(0, "a"), asks(1*workflowtest.Sec, "b"), dies(2*workflowtest.Sec, "a"), releases(20*workflowtest.Min, "b")},
			want:  []string{"0 a", "540 b"}, runs: 1,
		},
		"a holder that is found gone when it is told again keeps its slot too": {
			steps: []throttleStep{asks(0, "a"), asks(1*workflowtest.Sec, "b"), dies(2*workflowtest.Sec, "a"), asks(3*workflowtest.Sec, "a"), releases(20*workflowtest.Min, "b")},
			want:  []string{"0 a", "540 b"}, runs: 1,
		},
		"a holder that came back keeps its slot": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), dies(2*workflowtest.Sec, "a"), comesBack(5*workflowtest.Min, "a"), releases(20*workflowtest.Min, "a"), releases(30*workflowtest.Min, "b"),
			},
			want: []string{"0 a", "1200 b"}, runs: 1,
		},
		"a holder that goes again has its time anew": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), dies(2*workflowtest.Sec, "a"), comesBack(7*workflowtest.Min+1*workflowtest.Sec, "a"), dies(8*workflowtest.Min+1*workflowtest.Sec, "a"), releases(30*workflowtest.Min, "b"),
			},
			want: []string{"0 a", "1020 b"}, runs: 1,
		},
		"one that waits and is gone is forgotten, and asks as the last when it comes back": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), dies(3*workflowtest.Sec, "b"), comesBack(90*workflowtest.Sec, "b"), asks(91*workflowtest.Sec, "b"),
				releases(100*workflowtest.Sec, "a"), releases(110*workflowtest.Sec, "c"), releases(120*workflowtest.Sec, "b"),
			},
			want: []string{"0 a", "100 c", "110 b"}, runs: 1,
		},
		"one that cannot be told holds up nobody, and is told later": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), asks(2*workflowtest.Sec, "c"), happens(3*workflowtest.Sec, func(w *throttleWorld) { w.mute["b"] = true }),
				releases(10*workflowtest.Sec, "a"), happens(11*workflowtest.Sec, func(w *throttleWorld) { delete(w.mute, "b") }),
				releases(20*workflowtest.Sec, "c"), releases(30*workflowtest.Sec, "b"),
			},
			want: []string{"0 a", "10 c", "20 b"}, runs: 1,
		},
		"it ends when nobody is left, and starts again": {
			steps: []throttleStep{asks(0, "a"), releases(10*workflowtest.Sec, "a"), asks(20*workflowtest.Sec, "b"), releases(30*workflowtest.Sec, "b")},
			want:  []string{"0 a", "20 b"}, runs: 2,
		},
		"continue-as-new forgets nobody": {
			steps: []throttleStep{
				asks(0, "a"), asks(1*workflowtest.Sec, "b"), counts(2*workflowtest.Sec, "x"), continuesAsNew(3 * workflowtest.Sec), asks(4*workflowtest.Sec, "c"), continuesAsNew(5 * workflowtest.Sec),
				releases(6*workflowtest.Sec, "x"), dies(7*workflowtest.Sec, "a"), continuesAsNew(3 * workflowtest.Min), releases(20*workflowtest.Min, "b"), releases(21*workflowtest.Min, "c"),
			},
			want: []string{"0 a", "600 b", "1200 c"}, runs: 4,
		},
		"those that were in their first snapshot before it began count": { // Temporal's database was lost, say
			before: []string{"x"}, steps: []throttleStep{asks(0, "a"), asks(1*workflowtest.Sec, "x"), releases(10*workflowtest.Sec, "x"), releases(20*workflowtest.Sec, "a")},
			want: []string{"0 x", "1 x", "10 a"}, runs: 1,
		},
		"what cannot be meant is ignored": {
			steps: []throttleStep{
				asks(0, "a"),
				{at: 1 * workflowtest.Sec, wish: "more", backup: "b"},
				asks(2*workflowtest.Sec, ""), asks(3*workflowtest.Sec, "c"),
				releases(10*workflowtest.Sec, "a"), releases(20*workflowtest.Sec, "c"),
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
			assert.True(t, w.ended, "nobody is left, and it runs on")
			assert.Equal(t, test.runs, w.runs)
		})
	}
}

func TestNobodyIsTakenForGoneWhoCannotBeAskedFor(t *testing.T) {
	w := newThrottleWorld()
	require.NoError(t, w.play([]throttleStep{
		asks(0, "a"), asks(1*workflowtest.Sec, "b"), dies(2*workflowtest.Sec, "a"),
		happens(3*workflowtest.Sec, func(w *throttleWorld) { w.awayErr = errors.New("away") }), asks(10*workflowtest.Min, "c"),
		happens(30*workflowtest.Min, func(w *throttleWorld) { w.awayErr = nil }), releases(60*workflowtest.Min, "b"), releases(61*workflowtest.Min, "c"),
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
		asks(0, "west/fdbb/team/a/u"), asks(1*workflowtest.Sec, "west/fdbb/team/b/u"), dies(2*workflowtest.Sec, "west/fdbb/team/a/u"),
		happens(90*workflowtest.Sec, func(w *throttleWorld) {
			w.mu.Unlock() // the query runs the workflow
			defer w.mu.Lock()
			answer, err := w.env.QueryWorkflow(contract.QueryState)
			require.NoError(t, err)
			require.NoError(t, answer.Get(&state))
			details = workflowtest.CurrentDetails(t, &workflowtest.Scenario{TestWorkflowEnvironment: w.env})
		}), releases(20*workflowtest.Min, "west/fdbb/team/b/u"),
	}))
	at := w.start.Unix()
	assert.Equal(t, contract.FDBThrottleState{
		Limit:   1,
		Holders: []contract.FDBHolder{{WorkflowID: "west/fdbb/team/a/u", Namespace: "team", Since: at, ClosedSince: at + 60}},
		Waiting: []contract.FDBHolder{{WorkflowID: "west/fdbb/team/b/u", Namespace: "team", Since: at + 1}},
	}, state)
	assert.Equal(t, "**First snapshots:** 1 of at most 1 at a time; 1 wait.\n\nHave a slot:\n\n"+
		"- `west/fdbb/team/a/u` since 2026-08-01T12:00:00Z; its workflow does not run since 2026-08-01T12:01:00Z: the slot is kept "+
		"until 2026-08-01T12:09:00Z, as a start may be on its way\n\nWait, in this order:\n\n"+
		"- `west/fdbb/team/b/u` since 2026-08-01T12:00:01Z\n", details)
}

func TestASlotIsKeptAsLongAsAStartMayRun(t *testing.T) {
	assert.GreaterOrEqual(t, contract.FDBSlotGrace, contract.FDBAskWait+contract.FDBCommandStart+contract.FDBCommandRun)
	assert.Greater(t, contract.FDBAskTimeout, contract.FDBAskWait+contract.FDBCommandLimit, "an answer is waited for")
}
