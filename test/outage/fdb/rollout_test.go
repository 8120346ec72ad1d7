package fdb_test

import (
	"testing"

	"holdfast.dev/holdfast/test/histories"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// As in test/outage, for the workflows of FoundationDB: those of objects, of turns, and the coordinators, also those that Kubernetes
// clusters share. Every workflow type of FoundationDB's half is begun by one release and continued by the other.
func TestRolledOut(t *testing.T) {
	if !outage.RolloutsAreDue() {
		sample.InLong(t, "TestKilledAnywhere") // there a worker is replaced by one of the same build
	}
	t.Parallel()
	r := theRig(t)
	rollouts := outage.NewRollouts(t, allTypes())
	for _, s := range scenarios {
		if s.inLong && !sample.Whole() {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			undisturbed := undisturbed(t, r, s.name)
			rollouts.Run(t, s.rolledOut, undisturbed.moments, r.binaries, sample.Whole() || s.name == created,
				func(t *testing.T, rollout outage.Rollout, from map[string]string) {
					rollOut(t, r, undisturbed, rollout, from, rollouts)
				})
		})
	}
}

// allTypes returns all workflow types of FoundationDB's half.
func allTypes() (types []string) {
	for _, kind := range workflows.Kinds() {
		if kind.Queue != contract.QueueVelero && !histories.Newer[kind.Workflow] {
			types = append(types, kind.Workflow)
		}
	}
	return types
}

func rollOut(
	t *testing.T, r *rig, s *baseline, rollout outage.Rollout, from map[string]string, rollouts *outage.Rollouts,
) {
	t.Helper()
	older := *r
	older.binaries = from
	withCase(t, &older, func(c *testCase) {
		left := c.runWith(s.scenario, func() (ends int) { return rollout.Plan(c.Subjects) })
		c.requireSame(s.left.ofAnyBuild(), left.ofAnyBuild())
		rollouts.RequireServed(t, c.temporal.Client, "", c.began)
		t.Logf("rolled out %s", rollout)
	})
}

// ofAnyBuild leaves out what builds may write otherwise.
func (e effects) ofAnyBuild() effects {
	e.Object, e.Restore, e.Deployment = outage.OfAnyBuild(e.Object), outage.OfAnyBuild(e.Restore), outage.OfAnyBuild(e.Deployment)
	e.Writes = outage.WithoutWritesOf("deployments", e.Writes)
	return e
}
