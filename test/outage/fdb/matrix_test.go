package fdb_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// baseline is an undisturbed run of a scenario, made once: what it left, and what came about in it.
type baseline struct {
	scenario
	once    sync.Once
	ran     bool
	left    effects
	moments []outage.Moment
}

var baselines = func() map[string]*baseline {
	all := map[string]*baseline{}
	for _, s := range scenarios {
		all[s.name] = &baseline{scenario: s}
	}
	return all
}()

// undisturbed returns the baseline of a scenario. Nothing that the cases share may be disturbed meanwhile.
func undisturbed(t *testing.T, r *rig, scenario string) *baseline {
	t.Helper()
	b := baselines[scenario]
	require.NotNil(t, b, scenario)
	b.once.Do(func() {
		withCase(t, r, func(c *testCase) {
			b.left = c.run(b.scenario, outage.Disturbance{})
			b.left.Writes = c.attempts.FewestWrites(t, b.left.Writes)
			b.check(c, b.left)
			t.Logf("left: %s", asJSON(b.left))
			// What comes by the clock alone may come at any moment, or not in the next case.
			b.moments = slices.DeleteFunc(c.momentsOf(b.scenario), func(m outage.Moment) bool { return leftOut[m.Step] != "" })
			b.ran = true
		})
	})
	require.True(t, b.ran, "the undisturbed run of %q has failed", scenario)
	return b
}

// Temporal killed anywhere, restarted: the same comes of it as when nothing happens. The cases share it, so that no others run.
func TestTemporalKilledAnywhere(t *testing.T) {
	r := theRig(t)
	t.Run("undisturbed", func(t *testing.T) {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) {
				sample.Case(t, !s.inLong)
				t.Parallel()
				undisturbed(t, r, s.name)
			})
		}
	})
	checkActivities(t)
	var together, alone []subject
	for _, s := range scenarios {
		if s.inLong && !sample.Whole() {
			continue
		}
		for _, one := range chosen(t, undisturbed(t, r, s.name)) {
			switch {
			case one.Process != env.Temporal:
			case one.canStand():
				together = append(together, one)
			default:
				alone = append(alone, one)
			}
		}
	}
	for i, group := range slices.Collect(slices.Chunk(together, cases)) {
		t.Run(fmt.Sprint("group ", i+1), func(t *testing.T) { killTemporalAt(t, r, group) })
	}
	for _, one := range alone {
		t.Run("alone", func(t *testing.T) { killTemporalAt(t, r, []subject{one}) })
	}
}

// checkActivities: every activity is in the matrix, or there is a reason.
func checkActivities(t *testing.T) {
	t.Helper()
	met := map[string]bool{}
	for _, b := range baselines {
		if !b.ran && (!b.inLong || sample.Whole()) {
			return // -run has chosen some, or one has failed
		}
		for _, m := range b.moments {
			met[m.Step] = true
		}
	}
	for _, activity := range allActivities() {
		assert.True(t, met[activity] || leftOut[activity] != "", "%s: every activity is in the matrix, or there is a reason", activity)
	}
}

// A worker or watcher killed anywhere, restarted: the same comes of it as when nothing happens.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	r := theRig(t)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			sample.Case(t, !s.inLong)
			t.Parallel()
			for _, one := range chosen(t, undisturbed(t, r, s.name)) {
				if one.Process != env.Temporal {
					t.Run(one.Disturbance.String(), func(t *testing.T) {
						t.Parallel()
						withCase(t, r, func(c *testCase) { c.requireSame(one.left, c.run(one.scenario, one.Disturbance)) })
						t.Logf("killed %s: same object, agents, database, commands and writes as undisturbed", one.Disturbance)
					})
				}
			}
		})
	}
}

// momentsOf are those of FoundationDB backups that every run of a scenario has. Others come by Schedules, whose order is the
// clock's; and a throttle that has found the first snapshots of other cases is still there at a case's second one, so that it does
// not look for them again.
func (c *testCase) momentsOf(s scenario) []outage.Moment {
	ours := append(allActivities(), failpoint.Signal)
	if s.name != created {
		ours = slices.DeleteFunc(ours, func(step string) bool { return step == contract.FindFirstSnapshots.Name })
	}
	return slices.DeleteFunc(c.Driver.Moments(), func(m outage.Moment) bool { return !slices.Contains(ours, m.Step) })
}

// subject is a disturbance of a scenario.
type subject struct {
	*baseline
	outage.Disturbance
}

// canStand reports whether a process may stand at the moment for as long as others take to come to theirs: a local activity's time
// stands too, and these ones have twenty seconds for a heartbeat.
func (s subject) canStand() bool {
	return s.Moment.Form == failpoint.Local ||
		s.Moment.Step == contract.RunFDBCommand.Name || s.Moment.Step == contract.RunFDBRestoreCommand.Name
}

// chosen are the disturbances of a scenario that are asked for.
func chosen(t *testing.T, b *baseline) (chosen []subject) {
	t.Helper()
	disturbances := outage.Disturbances(b.moments)
	require.GreaterOrEqual(t, len(disturbances), 20, "before and after each of several activities, for each process")
	var all []string
	wanted := outage.Wanted(b.sample, b.recorded)
	for _, d := range disturbances {
		all = append(all, d.String())
		if sample.Whole() || slices.Contains(wanted, d.String()) {
			chosen = append(chosen, subject{b, d})
		}
	}
	assert.Subset(t, all, slices.Concat(b.sample, b.recorded), "these moments never came in an undisturbed run")
	return chosen
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
				c.requireSame(one.left, c.runWith(one.scenario, func() (restarts int) {
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
	c.settle(s) // some of it is done when all is as wished
	waiting, err := c.Driver.Pending()
	require.NoError(c.t, err)
	if len(waiting) > 0 && outage.AllRepeated(waiting) {
		c.t.Skipf("not in every run is this done more than once: %v", waiting)
	}
	require.Empty(c.t, waiting, "these moments never came, so nothing was killed there")
	require.NoError(c.t, c.AwaitRestarts(restarts, patience))
	return c.effects(s)
}

// runs reports whether a process runs; one that has ended and was not waited for does not.
func runs(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	return !strings.HasPrefix(rest, "Z")
}
