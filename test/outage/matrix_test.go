package outage_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
)

// sampleEvery is which part of the matrix runs without HOLDFAST_TEST_LONG, unless the scenario says otherwise.
const sampleEvery = 29

// Killed anywhere, restarted: the same comes of it as when nothing happens.
func TestKilledAnywhere(t *testing.T) {
	r := theRig(t)
	met, ran := map[string]bool{}, 0
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			ran++
			if s.inLong && !outage.Long() {
				t.Skip("a part of the whole matrix (HOLDFAST_TEST_LONG)")
			}
			if s.withoutVelero {
				velero := r.stack.Component(env.Velero)
				require.NoError(t, velero.Stop())
				t.Cleanup(func() { require.NoError(t, velero.Restart(context.Background())) })
			}
			want, moments := undisturbed(t, r, s)
			// A Schedule's time may come at any moment, or not in the next case.
			moments = slices.DeleteFunc(moments, func(m outage.Moment) bool { return leftOut[m.Step] != "" })
			for _, m := range moments {
				met[m.Step] = true
			}
			killedAnywhere(t, r, s, want, outage.Disturbances(moments))
		})
	}
	if ran == len(scenarios) { // else -run has chosen some
		for _, activity := range allActivities() {
			assert.True(t, met[activity] || leftOut[activity] != "", "%s: every activity is in the matrix, or there is a reason", activity)
		}
	}
}

func killedAnywhere(t *testing.T, r *rig, s scenario, want effects, all []outage.Disturbance) {
	t.Helper()
	require.GreaterOrEqual(t, len(all), 20, "before and after each of several activities, for each process")
	ran := 0
	for i, d := range all {
		if !outage.Long() && i%cmp.Or(s.sampleEvery, sampleEvery) != 0 {
			continue
		}
		ran++
		t.Run(d.String(), func(t *testing.T) {
			if d.Process != env.Temporal { // that one, the others share
				t.Parallel()
			}
			begin := time.Now()
			c := newCase(t, r)
			got := c.run(s, d)
			got.Writes = outage.WithLastWords(want.Writes, got.Writes)
			assert.Equal(t, want, got)
			say(t, "killed %s: same object, Velero objects, files and writes as undisturbed (%.0fs)", d, time.Since(begin).Seconds())
		})
	}
	say(t, "%d of %d cases", ran, len(all))
}

func undisturbed(t *testing.T, r *rig, s scenario) (effects, []outage.Moment) {
	t.Helper()
	c := newCase(t, r)
	left := c.run(s, outage.Disturbance{})
	s.check(c, left)
	return left, c.Driver.Moments()
}

// run runs a scenario with one disturbance and returns what it has left.
func (c *testCase) run(s scenario, d outage.Disturbance) effects {
	c.t.Helper()
	s.before(c)
	kills := d.Plan(c.t.Context(), c.Subjects)
	c.Driver.Arm()
	s.act(c)
	c.await(s.wish, func() bool { return s.done(c) })
	waiting, err := c.Driver.Pending()
	require.NoError(c.t, err)
	if len(waiting) > 0 && d.Moment.Occurrence > 1 {
		c.t.Skipf("not in every run is this done more than once: %v", waiting)
	}
	require.Empty(c.t, waiting, "these moments never came, so nothing was killed there")
	require.NoError(c.t, c.AwaitRestarts(kills, patience))
	return c.effects()
}
