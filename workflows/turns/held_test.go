package turns_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/turns"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

var heldKey = contract.TurnKey{
	Pool: contract.PoolRestores, ObjectRef: contract.ObjectRef{Namespace: "team", Name: "a", UID: "u-a"},
}

// settled runs what an object's workflow does with a turn, and returns what is left of the turn and what was given back.
func settled(t *testing.T, turn contract.Turn, refused error, does func(workflow.Context, *turns.Held, func(turns.Use) error) error) (
	contract.Turn, []contract.TurnReturn,
) {
	t.Helper()
	var back []contract.TurnReturn
	env := environment.New(&testsuite.WorkflowTestSuite{})
	env.RegisterActivityWithOptions(func(_ context.Context, in contract.TurnReturn) error {
		back = append(back, in)
		return refused
	}, activity.RegisterOptions{Name: contract.ReturnTurn.Name})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		held := turns.Of(heldKey.Pool, contract.ObjectInput{Cluster: "west", Ref: heldKey.ObjectRef}, &turn)
		return does(ctx, &held, func(use turns.Use) error { return held.Settle(ctx, call.Limits{}, use) })
	})
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	return turn, back
}

// TestWhatAnObjectDoesWithItsTurn: it keeps the turn while Velero works, leaves its end to the watcher's news if Velero has finished what
// was made with it, and gives it back in all other cases.
func TestWhatAnObjectDoesWithItsTurn(t *testing.T) {
	has, none := contract.Turn{Number: 7, Given: 7}, contract.Turn{}
	back := func(waits bool) []contract.TurnReturn {
		return []contract.TurnReturn{{Cluster: "west", TurnKey: heldKey, Turn: 7, Waits: waits}}
	}
	tests := map[string]struct {
		turn contract.Turn
		made bool
		use  turns.Use
		left contract.Turn
		back []contract.TurnReturn
	}{
		"none":                                     {},
		"none, and Velero works":                   {use: turns.Use{Unfinished: true}},
		"none, and a stall":                        {use: turns.Use{Unfinished: true, Stalled: true}},
		"none, and it waits":                       {use: turns.Use{Waits: true}},
		"Velero works":                             {turn: has, made: true, use: turns.Use{Unfinished: true}, left: has},
		"Velero works on what another run made":    {turn: has, use: turns.Use{Unfinished: true}, left: has},
		"Velero has finished":                      {turn: has, made: true},
		"Velero has finished what another made":    {turn: has, back: back(false)},
		"it came too late":                         {turn: has, use: turns.Use{Waits: true}, back: back(true)},
		"nothing is to be made":                    {turn: has, back: back(false)},
		"a stall":                                  {turn: has, made: true, use: turns.Use{Unfinished: true, Stalled: true}, back: back(false)},
		"a stall of what another run made":         {turn: has, use: turns.Use{Unfinished: true, Stalled: true}, back: back(false)},
		"what was made is gone, and it waits anew": {turn: has, made: true, use: turns.Use{Waits: true}, left: none},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			left, back := settled(t, test.turn, nil, func(_ workflow.Context, held *turns.Held, settle func(turns.Use) error) error {
				if test.made {
					held.Used()
				}
				return settle(test.use)
			})
			assert.Equal(t, test.left, left)
			assert.Equal(t, test.back, back)
		})
	}
}

// TestATurnThatWasUsedIsForgotten: the next one is given back if it is not used.
func TestATurnThatWasUsedIsForgotten(t *testing.T) {
	left, back := settled(t, contract.Turn{Number: 7, Given: 7}, nil, func(_ workflow.Context, held *turns.Held, settle func(turns.Use) error) error {
		held.Used()
		if err := settle(turns.Use{}); err != nil {
			return err
		}
		held.Note(contract.Turn{Number: 9, Given: 9})
		return settle(turns.Use{Waits: true})
	})
	assert.Zero(t, left)
	require.Len(t, back, 1)
	assert.EqualValues(t, 9, back[0].Turn)
}

// TestATurnThatCannotBeGivenBackIsKept: the run fails, and what it carries has the turn still.
func TestATurnThatCannotBeGivenBackIsKept(t *testing.T) {
	refused := temporal.NewNonRetryableApplicationError("no", "No", nil)
	turn := contract.Turn{Number: 7, Given: 7}
	left, back := settled(t, turn, refused, func(_ workflow.Context, _ *turns.Held, settle func(turns.Use) error) error {
		assert.ErrorContains(t, settle(turns.Use{Waits: true}), "no")
		return nil
	})
	assert.Equal(t, turn, left)
	assert.Len(t, back, 1)
}

// TestTheTurnThatWasGivenLastCounts: signals may come twice, and out of order. A signal without a turn is none.
func TestTheTurnThatWasGivenLastCounts(t *testing.T) {
	for title, test := range map[string]struct {
		had, noted, want contract.Turn
	}{
		"the first":        {noted: contract.Turn{Number: 5, Given: 5}, want: contract.Turn{Number: 5, Given: 5}},
		"no turn":          {had: contract.Turn{Number: 5, Given: 5}, want: contract.Turn{Number: 5, Given: 5}},
		"an earlier one":   {had: contract.Turn{Number: 5, Given: 9}, noted: contract.Turn{Number: 4, Given: 8}, want: contract.Turn{Number: 5, Given: 9}},
		"the same again":   {had: contract.Turn{Number: 5, Given: 5}, noted: contract.Turn{Number: 5, Given: 70}, want: contract.Turn{Number: 5, Given: 70}},
		"a later one":      {had: contract.Turn{Number: 5, Given: 5}, noted: contract.Turn{Number: 8, Given: 8}, want: contract.Turn{Number: 8, Given: 8}},
		"without a number": {had: contract.Turn{Number: 5, Given: 5}, noted: contract.Turn{Given: 99}, want: contract.Turn{Number: 5, Given: 5}},
	} {
		held := turns.Of(heldKey.Pool, contract.ObjectInput{}, &test.had)
		held.Note(test.noted)
		assert.Equal(t, test.want, *held.Turn, title)
	}
}

// TestHowLongATurnIsUsable: for twenty seconds after it was given, which is later than its number if it was given again. No time is
// added if an activity is scheduled before that, by the clock of another host of Temporal.
func TestHowLongATurnIsUsable(t *testing.T) {
	turn := contract.Turn{Number: 1000, Given: 2000}
	left := func(seconds time.Duration) contract.UsableTurn {
		return contract.UsableTurn{Turn: contract.Turn{Number: 1000, Given: 2000}, For: seconds}
	}
	assert.Equal(t, left(20*time.Second), turn.Remaining(time.Unix(2000, 0)))
	assert.Equal(t, left(20*time.Second), turn.Remaining(time.Unix(1990, 0)))
	assert.Equal(t, left(5*time.Second), turn.Remaining(time.Unix(2015, 0)))
	assert.Equal(t, left(time.Nanosecond), turn.Remaining(time.Unix(2020, 0).Add(-time.Nanosecond)))
	assert.Zero(t, turn.Remaining(time.Unix(2020, 0)))
	assert.Zero(t, contract.Turn{Given: 2000}.Remaining(time.Unix(2000, 0)), "it is none")
	const slowCreate = 10 * time.Second
	assert.Less(t, contract.TurnUsable+slowCreate, contract.TurnLossPause, "what was made with a turn of a lost run shows by then")
}
