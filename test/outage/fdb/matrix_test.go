package fdb_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process/points"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

// baseline is an undisturbed run: what it left, and what came about in it.
type baseline struct {
	scenario
	left    effects
	moments []outage.Moment
}

// Killed anywhere, restarted: the same comes of it as when nothing happens.
func TestKilledAnywhere(t *testing.T) {
	r := theRig(t)
	baselines := undisturbed(t, r, scenarios)
	if len(baselines) == len(scenarios) { // else -run has chosen some, or one has failed
		met := map[string]bool{}
		for _, b := range baselines {
			for _, m := range b.moments {
				met[m.Step] = true
			}
		}
		for _, activity := range allActivities() {
			assert.True(t, met[activity] || leftOut[activity] != "", "%s: every activity is in the matrix, or there is a reason", activity)
		}
	}
	var all, chosen int
	t.Run("Temporal", func(t *testing.T) { // the cases share it: one after the other
		a, n := killedAnywhere(t, r, baselines, func(d outage.Disturbance) bool { return d.Process == env.Temporal })
		all, chosen = all+a, chosen+n
	})
	t.Run("own", func(t *testing.T) {
		a, n := killedAnywhere(t, r, baselines, func(d outage.Disturbance) bool { return d.Process != env.Temporal })
		all, chosen = all+a, chosen+n
	})
	t.Logf("%d of %d cases", chosen, all)
}

// undisturbed runs scenarios side by side.
func undisturbed(t *testing.T, r *rig, wanted []scenario) []baseline {
	t.Helper()
	var mutex sync.Mutex
	found := map[string]baseline{}
	t.Run("undisturbed", func(t *testing.T) {
		for _, s := range wanted {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				c := newCase(t, r)
				left := c.run(s, outage.Disturbance{})
				s.check(c, left)
				t.Logf("left: %s", asJSON(left))
				mutex.Lock()
				defer mutex.Unlock()
				// What comes by the clock alone may come at any moment, or not in the next case.
				moments := slices.DeleteFunc(c.momentsOf(s), func(m outage.Moment) bool { return leftOut[m.Step] != "" })
				found[s.name] = baseline{scenario: s, left: left, moments: moments}
			})
		}
	})
	var all []baseline
	for _, s := range wanted {
		if b, ran := found[s.name]; ran {
			all = append(all, b)
		}
	}
	return all
}

// momentsOf are those of FoundationDB backups that every run of a scenario has. Others come by Schedules, whose order is the
// clock's; and a throttle that has found the first snapshots of other cases is still there at a case's second one, so that it does
// not look for them again.
func (c *testCase) momentsOf(s scenario) []outage.Moment {
	ours := append(allActivities(), points.Signal)
	if s.name != created {
		ours = slices.DeleteFunc(ours, func(step string) bool { return step == contract.ActivityFindFirstSnapshots })
	}
	return slices.DeleteFunc(c.Driver.Moments(), func(m outage.Moment) bool { return !slices.Contains(ours, m.Step) })
}

func killedAnywhere(
	t *testing.T, r *rig, baselines []baseline, concerned func(outage.Disturbance) bool,
) (all, chosen int) {
	t.Helper()
	for _, b := range baselines {
		disturbances := outage.Disturbances(b.moments)
		require.GreaterOrEqual(t, len(disturbances), 20, "before and after each of several activities, for each process")
		var names []string
		for _, d := range disturbances {
			names = append(names, d.String())
		}
		assert.Subset(t, names, b.sample, "these moments never came in an undisturbed run")
		for _, d := range disturbances {
			if !concerned(d) {
				continue
			}
			all++
			if !wanted(b, d) {
				continue
			}
			chosen++
			t.Run(b.name+" "+d.String(), func(t *testing.T) {
				if d.Process != env.Temporal {
					t.Parallel()
				}
				begin := time.Now()
				c := newCase(t, r)
				c.requireSame(b.left, c.run(b.scenario, d))
				t.Logf("killed %s: same object, agents, database, commands and writes as undisturbed (%.0fs)", d, time.Since(begin).Seconds())
			})
		}
	}
	return all, chosen
}

// wanted reports whether a disturbance is in the part of the matrix that is asked for.
func wanted(b baseline, d outage.Disturbance) bool {
	return outage.Long() || slices.Contains(b.sample, d.String())
}

// run runs a scenario with one disturbance and returns what it has left.
func (c *testCase) run(s scenario, d outage.Disturbance) effects {
	c.t.Helper()
	s.before(c)
	kills := d.Plan(c.t.Context(), c.Subjects)
	c.Driver.Arm()
	s.act(c)
	c.await(s.wish, func() bool { return s.done(c) })
	c.settle(s) // some of it is done when all is as wished
	waiting, err := c.Driver.Pending()
	require.NoError(c.t, err)
	if len(waiting) > 0 && d.Moment.Occurrence > 1 {
		c.t.Skipf("not in every run is this done more than once: %v", waiting)
	}
	require.Empty(c.t, waiting, "these moments never came, so nothing was killed there")
	require.NoError(c.t, c.AwaitRestarts(kills, patience))
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
