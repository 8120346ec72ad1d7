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
	for _, s := range scenarios {
		if s.withoutVelero || (s.inLong && !outage.Long()) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			moments := undisturbed(t, r, s).moments
			t.Run("forward", func(t *testing.T) {
				t.Parallel()
				rollOut(t, r, s, moments, baseline, r.binaries)
			})
			if workflows.AddsCommands == "" && (outage.Long() || s.name == "create") {
				t.Run("back", func(t *testing.T) {
					t.Parallel()
					rollOut(t, r, s, moments, r.binaries, baseline)
				})
			}
		})
	}
}

func rollOut(t *testing.T, r *rig, s scenario, moments []outage.Moment, from, to map[string]string) {
	t.Helper()
	rollout, is := outage.RolloutOf(moments, to[tools.HoldfastWorker])
	if !is {
		t.Skipf("one worker can serve all that happens: %v", moments)
	}
	older := *r
	older.binaries = from
	c, began := newCase(t, &older), time.Now()
	got := c.runWith(s, rollout.Alone, func() (ends int) { return rollout.Plan(c.Subjects) })
	assert.Equal(t, baselines[s.name].left, got, "rolled out %s", rollout)
	requireServedByTwo(t, r, c.namespace, began)
}

func requireServedByTwo(t *testing.T, r *rig, cluster string, began time.Time) {
	t.Helper()
	served, err := outage.ServedSince(context.Background(), r.temporal,
		fmt.Sprintf("%s = '%s'", contract.AttributeCluster.GetName(), cluster), began)
	require.NoError(t, err)
	assert.Empty(t, served.Failed, "workflow tasks that failed")
	assert.Len(t, served.By, 2, "workflow tasks by worker")
	say(t, "workflow tasks by worker: %v", served.By)
}
