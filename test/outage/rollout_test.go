package outage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

// A worker is replaced by one of another release while workflows are open, and both serve them side by side for a while: no workflow
// task fails, and the same comes of it as without.
func TestRolledOut(t *testing.T) {
	r := theRig(t)
	rollouts := outage.NewRollouts(t)
	for _, s := range scenarios {
		if s.withoutVelero || (s.inLong && !outage.Long()) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rollouts.Run(t, undisturbed(t, r, s).moments, r.binaries, outage.Long() || s.name == "create",
				func(t *testing.T, rollout outage.Rollout, from map[string]string) {
					rollOut(t, r, s, rollout, from, rollouts)
				})
		})
	}
}

func rollOut(
	t *testing.T, r *rig, s scenario, rollout outage.Rollout, from map[string]string, rollouts *outage.Rollouts,
) {
	t.Helper()
	older := *r
	older.binaries = from
	withCase(t, &older, func(c *testCase) {
		began := time.Now()
		got := c.runWith(s, rollout.Alone, func() (ends int) { return rollout.Plan(c.Subjects) })
		assert.Equal(t, baselines[s.name].left, got, "rolled out %s", rollout)
		rollouts.RequireServed(t, r.temporal, fmt.Sprintf("%s = '%s'", contract.AttributeCluster.GetName(), c.namespace), began)
	})
}
