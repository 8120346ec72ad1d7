package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/workflows/contract"
)

// An activity that is scheduled anew, again and again, until the API server is back, has the turn that it was scheduled with first.
func TestATurnIsNotUsableAgainSinceItsActivityIsScheduledAgain(t *testing.T) {
	usable := func(turn contract.UsableTurn) (usable bool) {
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		look := func(ctx context.Context, turn contract.UsableTurn) (bool, error) {
			return activities.TurnUsable(ctx, turn), nil
		}
		env.RegisterActivity(look)
		value, err := env.ExecuteActivity(look, turn)
		require.NoError(t, err)
		require.NoError(t, value.Get(&usable))
		return usable
	}
	given := func(ago time.Duration) contract.UsableTurn {
		return contract.UsableTurn{Turn: contract.Turn{Number: 7, Given: time.Now().Add(-ago).Unix()}, For: contract.TurnUsable}
	}
	assert.True(t, usable(given(0)))
	assert.False(t, usable(given(contract.TurnUsable+time.Second)), "it was scheduled anew")
	none := given(0)
	none.Number = 0
	assert.False(t, usable(none))
}
