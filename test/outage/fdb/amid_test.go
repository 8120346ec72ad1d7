package fdb_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// amidCommand is a command of a scenario that is under way when its worker is killed.
type amidCommand struct {
	scenario, tool, command string
	// took reports whether the database shows what the command does.
	took func(before, now *state.Cluster) bool
	// sample: in every run of the tests it has, or has not, done its work.
	sample []bool
}

func amidCommands() []amidCommand {
	aborted := func(_, now *state.Cluster) bool { return now.Backup("default").State == state.Aborted }
	return []amidCommand{
		{created, "fdbbackup", "start", func(_, now *state.Cluster) bool { return now.Backup("default") != nil }, []bool{false}},
		{"change the destination", "fdbbackup", "abort", aborted, nil},
		{"change the destination", "fdbbackup", "start", func(before, now *state.Cluster) bool {
			return now.Backup("default").UID != before.Backup("default").UID
		}, nil},
		{"modify the period", "fdbbackup", "modify", func(before, now *state.Cluster) bool {
			return now.Backup("default").IntervalSeconds != before.Backup("default").IntervalSeconds
		}, nil},
		{"pause", "fdbbackup", "pause", func(_, now *state.Cluster) bool { return now.Paused }, nil},
		{"resume", "fdbbackup", "resume", func(_, now *state.Cluster) bool { return !now.Paused }, nil},
		{"stop", "fdbbackup", "abort", aborted, nil},
		{"delete", "fdbbackup", "abort", aborted, nil},
		{"restore", "fdbrestore", "start", func(_, now *state.Cluster) bool { return len(now.Restores) == 1 }, []bool{true}},
		{"stop a restore", "fdbrestore", "abort", func(_, now *state.Cluster) bool {
			return now.Restores[0].State == state.RestoreAborted
		}, nil},
	}
}

// The worker is killed while a command runs, which has done its work or not: the tool ends with it, and the same comes of it as
// when nothing happens.
func TestKilledAmidACommand(t *testing.T) {
	t.Parallel()
	r := theRig(t)
	for _, a := range amidCommands() {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %s %s, its work done: %t", a.scenario, a.tool, a.command, after), func(t *testing.T) {
				sample.Case(t, slices.Contains(a.sample, after))
				t.Parallel()
				b := undisturbed(t, r, a.scenario)
				withCase(t, r, func(c *testCase) { c.requireSame(b.left, c.runKilledAmid(b.scenario, a, after)) })
			})
		}
	}
}

// runKilledAmid runs a scenario in which the worker is killed while a command hangs.
func (c *testCase) runKilledAmid(s scenario, amid amidCommand, after bool) effects {
	c.t.Helper()
	s.before(c)
	before, err := c.sim.State(c.database)
	require.NoError(c.t, err)
	require.NoError(c.t, c.sim.SetFault(c.database, amid.tool+" "+amid.command, fdbsim.Fault{Hang: true, After: after, Times: 1}))
	s.act(c)
	var hanging fdbsim.Call
	c.await(amid.command+" hangs", func() bool {
		calls, err := c.sim.CallsOf(c.database, amid.tool, amid.command)
		if err != nil {
			return false
		}
		for _, call := range calls {
			if !call.Ended() && !call.Dry() {
				hanging = call
				return true
			}
		}
		return false
	})
	c.await("its work is as it shall be", func() bool {
		now, err := c.sim.State(c.database)
		return err == nil && (!after || amid.took(before, now))
	})
	require.NoError(c.t, c.Worker.Kill())
	c.await("the tool ends with its worker", func() bool { return !runs(hanging.PID) })
	_, others := c.folders()
	assert.NotEmpty(c.t, others, "a worker that is killed cannot clear up: the next one does")
	now, err := c.sim.State(c.database)
	require.NoError(c.t, err)
	require.Equal(c.t, after, amid.took(before, now), "whether the work was done")
	require.NoError(c.t, c.Worker.Restart(c.t.Context()))
	c.await(s.want, func() bool { return s.done(c) })
	return c.effects(s)
}
