package fdb_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/outage"
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
}

const workTakes = 5 * time.Second

func amidWorks() []amidWork {
	return []amidWork{
		{"expire", func(c *testCase) {
			require.NoError(c.t, c.sim.SetFault(c.database, "fdbbackup expire", fdbsim.Fault{Hang: true, HangFor: workTakes, Times: 1}))
		}, func(c *testCase) bool { return c.underWay("expire") }, env.Worker},
		// Deletions are told no database: those of other cases are slow too.
		{"delete", func(c *testCase) {
			require.NoError(c.t, c.sim.SetFault("", "fdbbackup delete", fdbsim.Fault{Delay: workTakes}))
			c.t.Cleanup(func() { require.NoError(c.t, c.sim.ClearFaults("")) })
		}, func(c *testCase) bool { return c.underWay("delete") }, env.Temporal},
		{"restore", func(c *testCase) {
			require.NoError(c.t, c.sim.Control(c.database, func(control *fdbsim.Control) { control.Restore = workTakes }))
		}, func(c *testCase) bool {
			return c.restoreState() == "running"
		}, env.Watcher},
	}
}

// underWay reports whether a command for the case runs.
func (c *testCase) underWay(command string) bool {
	return slices.ContainsFunc(c.calls(), func(call fdbsim.Call) bool {
		return call.Tool == "fdbbackup" && !call.Ended() && len(call.Args) > 0 && call.Args[0] == command
	})
}

// A process is killed in the middle of an expiration, a deletion and a restore: it is resumed, and the work is done once. The cases
// share Temporal, so none is parallel.
func TestKilledAmidWork(t *testing.T) {
	r := theRig(t)
	works := amidWorks()
	var concerned []scenario
	for _, s := range scenarios {
		if slices.ContainsFunc(works, func(w amidWork) bool { return w.scenario == s.name }) {
			concerned = append(concerned, s)
		}
	}
	for _, b := range undisturbed(t, r, concerned) {
		work := works[slices.IndexFunc(works, func(w amidWork) bool { return w.scenario == b.name })]
		for _, process := range []string{env.Worker, env.Watcher, env.Temporal} {
			if process != work.sampled && !outage.Long() {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s", b.name, strings.ToLower(process)), func(t *testing.T) {
				c := newCase(t, r)
				b.before(c)
				work.slow(c)
				b.act(c)
				c.await(b.name+" is under way", func() bool { return work.begun(c) })
				killed := c.Process(process)
				require.NoError(t, killed.Kill())
				require.NoError(t, killed.Restart(t.Context()))
				c.await(b.wish, func() bool { return b.done(c) })
				c.requireSame(b.left, c.effects(b.scenario))
			})
		}
	}
}
