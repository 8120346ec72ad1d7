package outage_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// baseline is an undisturbed run of a scenario, made once: what it left, and what came about in it.
type baseline struct {
	once    sync.Once
	ran     bool
	left    effects
	moments []outage.Moment
}

var baselines = func() map[string]*baseline {
	all := map[string]*baseline{}
	for _, s := range scenarios {
		all[s.name] = &baseline{}
	}
	return all
}()

// undisturbed returns the scenario's baseline. Nothing may be disturbed meanwhile.
func undisturbed(t *testing.T, r *rig, s scenario) *baseline {
	t.Helper()
	b := baselines[s.name]
	b.once.Do(func() {
		withCase(t, r, func(c *testCase) {
			b.left = c.run(s, outage.Disturbance{})
			b.left.Writes = c.attempts.FewestWrites(t, b.left.Writes)
			s.check(c, b.left)
			// A Schedule's time may come at any moment, or not in the next case.
			b.moments = slices.DeleteFunc(c.Driver.Moments(), func(m outage.Moment) bool { return leftOut[m.Step] != "" })
			b.ran = true
		})
	})
	require.True(t, b.ran, "the undisturbed run of %q has failed", s.name)
	return b
}

// Killed anywhere, restarted: the same comes of it as when nothing happens.
func TestKilledAnywhere(t *testing.T) {
	r := theRig(t)
	t.Run("own", func(t *testing.T) {
		eachScenario(t, r, ordinary)
	})
	t.Run("temporal", func(t *testing.T) { // the cases share it
		killTemporal(t, r, ordinary)
	})
	t.Run("in turns", func(t *testing.T) {
		giveTurns(t, r)
		inTurns := func(s scenario) bool { return s.inTurns }
		t.Run("own", func(t *testing.T) { eachScenario(t, r, inTurns) })
		t.Run("temporal", func(t *testing.T) { killTemporal(t, r, inTurns) })
	})
	t.Run("with drills", func(t *testing.T) {
		allowDrills(t, r)
		drills := func(s scenario) bool { return s.drills }
		t.Run("own", func(t *testing.T) { eachScenario(t, r, drills) })
		t.Run("temporal", func(t *testing.T) { killTemporal(t, r, drills) })
	})
	t.Run("without Velero", func(t *testing.T) {
		without := func(s scenario) bool { return s.withoutVelero }
		velero := r.stack.Component(env.Velero)
		require.NoError(t, velero.Stop())
		t.Cleanup(func() { require.NoError(t, velero.Restart(context.Background())) })
		t.Run("own", func(t *testing.T) { eachScenario(t, r, without) })
		t.Run("temporal", func(t *testing.T) { killTemporal(t, r, without) })
	})
	met := map[string]bool{}
	for _, s := range scenarios {
		if s.inLong && !sample.Whole() {
			continue
		}
		if !baselines[s.name].ran {
			return // -run has chosen some, or one has failed
		}
		for _, m := range baselines[s.name].moments {
			met[m.Step] = true
		}
	}
	for _, activity := range allActivities() {
		assert.True(t, met[activity] || leftOut[activity] != "", "%s: every activity is in the matrix, or there is a reason", activity)
	}
}

// ordinary reports whether a scenario needs nothing that others do not bear.
func ordinary(s scenario) bool { return !s.withoutVelero && !s.inTurns && !s.drills }

// eachScenario runs scenarios undisturbed, and those cases in which a worker or watcher is killed: each has its own. Cases in turns
// run one after the other: a queue reads the objects of the whole Kubernetes cluster, and would give turns to those of another case.
func eachScenario(t *testing.T, r *rig, concerned func(scenario) bool) {
	t.Helper()
	for _, s := range scenarios {
		if !concerned(s) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			sample.Case(t, !s.inLong)
			if !s.inTurns {
				t.Parallel()
			}
			b := undisturbed(t, r, s)
			for _, d := range chosen(t, s, b) {
				if d.Process == env.Temporal {
					continue
				}
				t.Run(d.String(), func(t *testing.T) {
					if !s.inTurns {
						t.Parallel()
					}
					withCase(t, r, func(c *testCase) { c.requireSameIfKilled(s, d, c.run(s, d)) })
				})
			}
		})
	}
}

// chosen are the disturbances of a scenario that are asked for.
func chosen(t *testing.T, s scenario, b *baseline) []outage.Disturbance {
	t.Helper()
	all := outage.Disturbances(b.moments)
	require.GreaterOrEqual(t, len(all), 20, "before and after each of several activities, for each process")
	var names []string
	for _, d := range all {
		names = append(names, d.String())
	}
	assert.Subset(t, names, slices.Concat(s.sample, s.recorded), "these moments never came in an undisturbed run")
	if sample.Whole() {
		return all
	}
	wanted := outage.Wanted(s.sample, s.recorded)
	return slices.DeleteFunc(all, func(d outage.Disturbance) bool { return !slices.Contains(wanted, d.String()) })
}

// subject is a case of which several are disturbed together.
type subject struct {
	scenario
	outage.Disturbance
}

// killTemporal kills Temporal at every moment that is asked for, once for as many cases as run at a time: each stands at its
// moment until the others have come. In a regular activity none can stand for long, so that it is killed for each of those alone.
func killTemporal(t *testing.T, r *rig, concerned func(scenario) bool) {
	t.Helper()
	var together, alone []subject
	for _, s := range scenarios {
		if !concerned(s) || (s.inLong && !sample.Whole()) {
			continue
		}
		for _, d := range chosen(t, s, undisturbed(t, r, s)) {
			switch {
			case d.Process != env.Temporal:
			case d.Moment.Form == failpoint.Local && !s.inTurns:
				together = append(together, subject{s, d})
			default:
				alone = append(alone, subject{s, d})
			}
		}
	}
	for i, group := range slices.Collect(slices.Chunk(together, cases())) {
		t.Run(fmt.Sprint("together ", i+1), func(t *testing.T) { killTemporalAt(t, r, group) })
	}
	for _, one := range alone {
		t.Run("alone", func(t *testing.T) { killTemporalAt(t, r, []subject{one}) })
	}
}

func killTemporalAt(t *testing.T, r *rig, group []subject) {
	t.Helper()
	var parts []outage.Part
	for _, one := range group {
		parts = append(parts, outage.Part{
			Name: one.name + " " + one.Disturbance.String(),
			Run: func(t *testing.T, attempts *outage.Attempts, ready, there *outage.Guest) {
				t.Helper()
				c := newCase(t, r, attempts)
				c.requireSameIfKilled(one.scenario, one.Disturbance, c.runWith(one.scenario, func() (restarts int) {
					c.Driver.At(one.Moment, there.Come)
					require.NoError(t, ready.Come())
					return 0 // of its own
				}))
			},
		})
	}
	outage.RepeatTogether(parts, func(subjects []outage.Subject) {
		restarted := make(chan error, 1)
		kill := outage.KillAndRestart(context.WithoutCancel(t.Context()), r.stack.Component(env.Temporal), restarted)
		if outage.Together(t, subjects, kill) {
			require.NoError(t, outage.Await(restarted, patience, "Temporal is back"))
		}
	})
}

// run runs a scenario with one disturbance and returns what it has left.
func (c *testCase) run(s scenario, d outage.Disturbance) effects {
	c.t.Helper()
	return c.runWith(s, func() int { return d.Plan(c.t.Context(), c.Subjects) })
}

// runWith does so with a disturbance that is planned when the scenario is about to begin.
func (c *testCase) runWith(s scenario, plan func() (restarts int)) effects {
	c.t.Helper()
	s.before(c)
	restarts := plan()
	c.Driver.Arm()
	s.act(c)
	c.await(s.want, func() bool { return s.done(c) })
	waiting, err := c.Driver.Pending()
	require.NoError(c.t, err)
	if len(waiting) > 0 && outage.AllRepeated(waiting) {
		c.t.Skipf("not in every run is this done more than once: %v", waiting)
	}
	require.Empty(c.t, waiting, "these moments never came, so nothing was killed there")
	require.NoError(c.t, c.AwaitRestarts(restarts, patience))
	return c.effects()
}

func (c *testCase) requireSameIfKilled(s scenario, d outage.Disturbance, got effects) {
	c.t.Helper()
	want := baselines[s.name].left
	got.Writes = outage.WithLastWords(want.Writes, got.Writes)
	c.requireSame(want, got)
	say(c.t, "killed %s: same object, Velero objects, files and writes as undisturbed", d)
}
