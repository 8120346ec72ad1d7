package finalization

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOneTenantTakesOneTurn(t *testing.T) {
	var turns Turns
	giveBack, ok := turns.take("team-0")
	require.True(t, ok)
	_, again := turns.take("team-0")
	assert.False(t, again, "one of each namespace")
	for _, namespace := range []string{"team-1", "team-2"} {
		_, ok := turns.take(namespace)
		require.True(t, ok)
	}
	_, fourth := turns.take("team-3")
	assert.False(t, fourth, "as many as memory allows")
	giveBack()
	_, fourth = turns.take("team-3")
	assert.True(t, fourth)
}

// Who waits for a turn in vain is told so when time is up.
func TestAWaitForATurnEnds(t *testing.T) {
	c := &Context{Expired: true}
	var found Findings
	waits := &NotYetError{For: "other restores to have read their files"}
	require.NoError(t, c.storeProblem(&found, waits))
	assert.Equal(t, []string{"the backup's files could not be read in time: it waited for other restores to have read their files"},
		found.Errors.Velero)
	c.Expired = false
	require.ErrorIs(t, c.storeProblem(&found, waits), waits)
}
