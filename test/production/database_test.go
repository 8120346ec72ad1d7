package production_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Temporal's database is set back to an older copy. Workflows that it has forgotten are started again, and workflows that it
// believes to be open find that their objects are done or gone: nothing is made twice, and nothing that was deleted comes back.
func TestTemporalsDatabaseIsSetBack(t *testing.T) {
	r := onSharedStack(t, "set-back")
	for _, name := range []string{"before", "deleted-after"} {
		r.BackUp(name, "")
		r.AwaitEnd(name)
	}
	r.BackUp("under-way", "")
	setBack, err := r.SaveTemporal(t.Context())
	require.NoError(t, err)

	r.AwaitEnd("under-way")
	r.BackUp("forgotten", "")
	r.AwaitEnd("forgotten")
	r.remove("deleted-after")
	r.BackUp("half-forgotten", "")
	earlier := r.Made()
	require.NoError(t, setBack(t.Context()))

	for _, name := range []string{"before", "under-way", "forgotten", "half-forgotten"} {
		r.AwaitEnd(name)
	}
	r.BackUp("after", "")
	r.AwaitEnd("after")
	r.remove("forgotten")
	made := r.Made()
	for _, name := range []string{"before", "under-way"} {
		require.Len(t, made[name], 1, name)
		assert.Equal(t, earlier[name][0].UID, made[name][0].UID, name)
	}
	for _, name := range []string{"half-forgotten", "after"} {
		assert.Len(t, made[name], 1, name)
	}
	assert.Empty(t, made["deleted-after"])
	assert.Empty(t, made["forgotten"])
	r.AwaitNoOpenWorkflow()
}
