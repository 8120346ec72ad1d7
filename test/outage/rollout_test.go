package outage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
)

// A worker is replaced by one of another release while workflows are open, and both serve them side by side for a while: no workflow
// task fails, and the same comes of it as without. Forward is from the release that the baseline of histories was recorded by; back
// goes to it, which is safe as long as this code adds no commands.
func TestRolledOut(t *testing.T) {
	r := theRig(t)
	baseline, err := outage.BuildBaseline(t.Context())
	if errors.Is(err, tools.ErrNoCommit) {
		t.Skip(err)
	}
	require.NoError(t, err)
	takeovers := &outage.Takeovers{}
	t.Cleanup(func() { takeovers.RequireMost(t) })
	for _, s := range scenarios {
		if s.withoutVelero || (s.inLong && !outage.Long()) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			moments := undisturbed(t, r, s).moments
			t.Run("forward", func(t *testing.T) {
				t.Parallel()
				rollOut(t, r, s, moments, baseline, r.binaries, takeovers)
			})
			if workflows.AddsCommands == "" && (outage.Long() || s.name == "create") {
				t.Run("back", func(t *testing.T) {
					t.Parallel()
					rollOut(t, r, s, moments, r.binaries, baseline, takeovers)
				})
			}
		})
	}
}

func rollOut(
	t *testing.T, r *rig, s scenario, moments []outage.Moment, from, to map[string]string, takeovers *outage.Takeovers,
) {
	t.Helper()
	rollout, is := outage.RolloutOf(moments, to[tools.HoldfastWorker])
	if !is {
		t.Skipf("one worker can serve all that happens: %v", moments)
	}
	older := *r
	older.binaries = from
	withCase(t, &older, func(c *testCase) {
		began := time.Now()
		got := c.runWith(s, rollout.Alone, func() (ends int) { return rollout.Plan(c.Subjects) })
		assert.Equal(t, baselines[s.name].left, got, "rolled out %s", rollout)
		served, err := outage.ServedSince(context.Background(), r.temporal,
			fmt.Sprintf("%s = '%s'", contract.AttributeCluster.GetName(), c.namespace), began)
		require.NoError(t, err)
		takeovers.Require(t, served)
		say(t, "workflow tasks by worker: %v", served.By)
	})
}
