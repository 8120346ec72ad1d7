package finalization

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities"
)

// Who waits for a turn in vain is told so when time is up.
func TestAWaitForATurnEnds(t *testing.T) {
	c := &Context{Expired: true}
	var found Findings
	waits := &activities.NotYetError{For: "other restores to have read their files"}
	require.NoError(t, c.storeProblem(&found, waits))
	assert.Equal(t, []string{"the backup's files could not be read in time: it waited for other restores to have read their files"},
		found.Errors.Velero)
	c.Expired = false
	require.ErrorIs(t, c.storeProblem(&found, waits), waits)
}
