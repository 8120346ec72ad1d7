package stores

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOneTenantTakesOneTurn(t *testing.T) {
	var turns turns
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
