package fdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows"
)

// As in test/outage, for the workflows of FoundationDB: those of objects, of turns, and the coordinators, also those that Kubernetes
// clusters share, whose task queue has no version.
func TestRolledOut(t *testing.T) {
	t.Parallel()
	r := theRig(t)
	baseline, err := outage.BuildBaseline(t.Context())
	if errors.Is(err, tools.ErrNoCommit) {
		t.Skip(err)
	}
	require.NoError(t, err)
	takeovers := &outage.Takeovers{}
	t.Cleanup(func() { takeovers.RequireMost(t) })
	for _, s := range scenarios {
		if s.inLong && !outage.Long() {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			undisturbed := undisturbed(t, r, s.name)
			t.Run("forward", func(t *testing.T) {
				t.Parallel()
				rollOut(t, r, undisturbed, baseline, r.binaries, takeovers)
			})
			if workflows.AddsCommands == "" && (outage.Long() || s.name == created) {
				t.Run("back", func(t *testing.T) {
					t.Parallel()
					rollOut(t, r, undisturbed, r.binaries, baseline, takeovers)
				})
			}
		})
	}
}

func rollOut(t *testing.T, r *rig, s *baseline, from, to map[string]string, takeovers *outage.Takeovers) {
	t.Helper()
	rollout, is := outage.RolloutOf(s.moments, to[tools.HoldfastWorker])
	if !is {
		t.Skipf("one worker can serve all that happens: %v", s.moments)
	}
	older := *r
	older.binaries = from
	began := time.Now()
	c := newCase(t, &older)
	c.requireSame(s.left, c.runWith(s.scenario, rollout.Alone, func() (ends int) { return rollout.Plan(c.Subjects) }))
	served, err := outage.ServedSince(context.Background(), c.temporal.Client, "", began)
	require.NoError(t, err)
	takeovers.Require(t, served)
	t.Logf("rolled out %s; workflow tasks by worker: %v", rollout, served.By)
}
