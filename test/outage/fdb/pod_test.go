package fdb_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// amidWork is the middle of what a scenario has done by others than the worker: by a pod, or by the agents of the database.
type amidWork struct {
	scenario string
	// slow makes the work take a while.
	slow func(*testCase)
	// begun reports whether it is under way.
	begun func(*testCase) bool
	// sampled is the process that every run of the tests kills.
	sampled string
	// alone: what makes it slow does so for all cases of the kind.
	alone bool
}

const workTakes = 5 * time.Second

func amidWorks() []amidWork {
	return []amidWork{
		{"expire", func(c *testCase) {
			require.NoError(c.t, c.sim.SetFault(c.database, "fdbbackup expire", fdbsim.Fault{Hang: true, HangFor: workTakes, Times: 1}))
		}, func(c *testCase) bool { return c.underWay("expire") }, env.Worker, false},
		// Deletions are told no database: those of other cases are slow too.
		{"delete", func(c *testCase) {
			require.NoError(c.t, c.sim.SetFault("", "fdbbackup delete", fdbsim.Fault{Delay: workTakes}))
			c.t.Cleanup(func() { require.NoError(c.t, c.sim.ClearFaults("")) })
		}, func(c *testCase) bool { return c.underWay("delete") }, env.Temporal, true},
		{"restore", func(c *testCase) {
			require.NoError(c.t, c.sim.Control(c.database, func(control *fdbsim.Control) { control.Restore = workTakes }))
		}, func(c *testCase) bool {
			return c.restoreState() == fdbv1alpha1.RestoreRunning
		}, env.Watcher, false},
	}
}

// underWay reports whether a command for the case runs.
func (c *testCase) underWay(command string) bool {
	return slices.ContainsFunc(c.calls(), func(call fdbsim.Call) bool {
		return call.Tool == "fdbbackup" && !call.Ended() && len(call.Args) > 0 && call.Args[0] == command
	})
}

// A process is killed in the middle of an expiration, a deletion and a restore: it is resumed, and the work is done once.
func TestKilledAmidWork(t *testing.T) {
	t.Parallel()
	killAmidWork(t, func(process string) bool { return process != env.Temporal })
}

// The cases share Temporal, so none is parallel.
func TestTemporalKilledAmidWork(t *testing.T) {
	killAmidWork(t, func(process string) bool { return process == env.Temporal })
}

func killAmidWork(t *testing.T, concerned func(process string) bool) {
	t.Helper()
	r := theRig(t)
	for _, work := range amidWorks() {
		for _, process := range []string{env.Worker, env.Watcher, env.Temporal} {
			if !concerned(process) {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s", work.scenario, strings.ToLower(process)), func(t *testing.T) {
				sample.Case(t, process == work.sampled)
				if process != env.Temporal && !work.alone {
					t.Parallel()
				}
				b := undisturbed(t, r, work.scenario)
				withCase(t, r, func(c *testCase) { c.runKilledAmidWork(b, work, process) })
			})
		}
	}
}

func (c *testCase) runKilledAmidWork(b *baseline, work amidWork, process string) {
	c.t.Helper()
	b.before(c)
	work.slow(c)
	b.act(c)
	c.await(b.name+" is under way", func() bool { return work.begun(c) })
	killed := c.Process(process)
	require.NoError(c.t, killed.Kill())
	require.NoError(c.t, killed.Restart(c.t.Context()))
	c.await(b.want, func() bool { return b.done(c) })
	c.requireSame(b.left, c.effects(b.scenario))
}
