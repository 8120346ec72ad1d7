package outage_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/test/outage/points"
)

// occurrences of a point that the matrix looks at: the later ones depend on how many of Velero's phases were seen.
const occurrences = 2

// sampleEvery is which part of the matrix runs without HOLDFAST_TEST_LONG, unless the scenario says otherwise.
const sampleEvery = 13

// Killed anywhere, restarted: the same comes of it as when nothing happens.
func TestKilledAnywhere(t *testing.T) {
	r := theRig(t)
	met, ran := map[string]bool{}, 0
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			ran++
			if s.inLong && !long() {
				t.Skip("a part of the whole matrix (HOLDFAST_TEST_LONG)")
			}
			if s.withoutVelero {
				velero := r.stack.Component(env.Velero)
				require.NoError(t, velero.Stop())
				t.Cleanup(func() { require.NoError(t, velero.Restart(context.Background())) })
			}
			want, moments := undisturbed(t, r, s)
			for _, m := range moments {
				met[m.Step] = true
			}
			killedAnywhere(t, r, s, want, disturbances(moments))
		})
	}
	if ran == len(scenarios) { // else -run has chosen some
		for _, activity := range allActivities() {
			assert.Equal(t, leftOut[activity] == "", met[activity], "%s: every activity is in the matrix, or there is a reason", activity)
		}
	}
}

func killedAnywhere(t *testing.T, r *rig, s scenario, want effects, all []disturbance) {
	t.Helper()
	require.GreaterOrEqual(t, len(all), 20, "before and after each of several activities, for each process")
	ran := 0
	for i, d := range all {
		if !long() && i%cmp.Or(s.sampleEvery, sampleEvery) != 0 {
			continue
		}
		ran++
		t.Run(d.String(), func(t *testing.T) {
			if d.process != env.Temporal { // that one, the others share
				t.Parallel()
			}
			begin := time.Now()
			c := newCase(t, r)
			got := c.run(s, d)
			got.Writes = withLastWords(want.Writes, got.Writes)
			assert.Equal(t, want, got)
			say(t, "killed %s: same object, Velero objects, files and writes as undisturbed (%.0fs)", d, time.Since(begin).Seconds())
		})
	}
	say(t, "%d of %d cases", ran, len(all))
}

// withLastWords adds a write that is missing, if it is the only one: the API server does not note as done what it was doing
// for a client when that was killed. If it was not done, the objects show that.
func withLastWords(want, got []string) []string {
	missing := slices.Clone(want)
	for _, write := range got {
		at := slices.Index(missing, write)
		if at < 0 {
			return got
		}
		missing = slices.Delete(missing, at, at+1)
	}
	if len(missing) == 1 {
		return want
	}
	return got
}

func undisturbed(t *testing.T, r *rig, s scenario) (effects, []outage.Moment) {
	t.Helper()
	c := newCase(t, r)
	left := c.run(s, disturbance{})
	s.check(c, left)
	return left, c.driver.Moments()
}

// run runs a scenario with one disturbance and returns what it has left.
func (c *testCase) run(s scenario, d disturbance) effects {
	c.t.Helper()
	s.before(c)
	kills := d.plan(c)
	c.driver.Arm()
	s.act(c)
	c.await(s.wish, func() bool { return s.done(c) })
	waiting, err := c.driver.Pending()
	require.NoError(c.t, err)
	if len(waiting) > 0 && d.moment.Occurrence > 1 {
		c.t.Skipf("not in every run is this done more than once: %v", waiting)
	}
	require.Empty(c.t, waiting, "these moments never came, so nothing was killed there")
	for range kills {
		select {
		case err := <-c.restarted:
			require.NoError(c.t, err)
		case <-time.After(patience):
			c.t.Fatal("the process that was killed has not come back")
		}
	}
	return c.effects()
}

// disturbance is the kill of a process at a moment; the zero value is none.
type disturbance struct {
	process string
	moment  outage.Moment
	// away: the API server is, for the local form to fail, and the moment is in the regular form that follows.
	away bool
}

func (d disturbance) String() string { return fmt.Sprintf("%s %s", d.process, d.moment) }

// disturbances are all kills that an undisturbed run gives reason to. An activity runs in its regular form only when the API
// server does not answer the local one.
func disturbances(moments []outage.Moment) []disturbance {
	var all []disturbance
	for _, m := range moments {
		if m.Occurrence > occurrences {
			continue
		}
		for _, process := range []string{env.Worker, env.Watcher, env.Temporal} {
			if process != env.Temporal || m.Step != points.Signal {
				all = append(all, disturbance{process: process, moment: m})
			}
		}
		if m.Form == points.Local && m.Occurrence == 1 {
			regular := m
			regular.Form = points.Regular
			all = append(all, disturbance{process: env.Worker, moment: regular, away: true})
		}
	}
	return all
}

// plan tells the driver what to do, and returns how many processes will be started again.
func (d disturbance) plan(c *testCase) int {
	if d.process == "" {
		return 0
	}
	kill := outage.KillAndRestart(context.WithoutCancel(c.t.Context()), c.process(d.process), c.restarted)
	if !d.away {
		c.driver.At(d.moment, kill)
		return 1
	}
	before := outage.Moment{Point: points.Point{Step: d.moment.Step, Form: points.Local, Of: d.moment.Of}, Occurrence: 1}
	c.driver.At(before, func() error { c.proxy.Pause(); return nil })
	before.Form = points.Regular
	resume := func() error { c.proxy.Resume(); return nil }
	if d.moment.After {
		c.driver.At(before, resume)
		c.driver.At(d.moment, kill)
		return 1
	}
	c.driver.At(before, func() error {
		if err := c.process(d.process).Kill(); err != nil {
			return err
		}
		c.proxy.Resume()
		return kill()
	})
	return 1
}

func (c *testCase) process(name string) *env.Process {
	switch name {
	case env.Worker:
		return c.worker
	case env.Watcher:
		return c.watcher
	}
	return c.stack.Component(name)
}
