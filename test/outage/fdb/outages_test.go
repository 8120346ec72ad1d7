package fdb_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// settled is how soon after an outage, and after the first snapshot's end, the status is right.
const settled = 15 * time.Second

// firstSnapshot is how long the first snapshot takes where an outage shall begin in it.
const firstSnapshot = 10 * time.Second

// phases of a new backup: the step that is about to be taken, or has just been, when an outage begins.
var phases = map[string]failpoint.Point{
	"seen":           {Step: contract.ObserveFDBBackup.Name, Form: failpoint.Local},
	"agents made":    {Step: contract.ApplyFDBAgents.Name, Form: failpoint.Local},
	"planned":        {Step: contract.PlanFDBBackup.Name, Form: failpoint.Local},
	"started":        {Step: contract.RunFDBCommand.Name, Form: failpoint.Regular, Of: string(contract.FDBStart)},
	"first snapshot": {Step: contract.RunFDBCommand.Name, Form: failpoint.Regular, Of: string(contract.FDBStart), After: true},
	"published":      {Step: contract.PublishFDBBackup.Name, Form: failpoint.Local},
}

type phaseOutage struct {
	component, how string
	at             string // of phases
	lasting        time.Duration
	sampled        bool // every run of the tests has it, for as long as the first snapshot takes
}

func phaseOutages() []phaseOutage {
	const half, minute, five = 30 * time.Second, time.Minute, 5 * time.Minute
	return []phaseOutage{
		{env.KubeAPIServer, outage.Stopped, "first snapshot", half, true},
		{env.KubeAPIServer, outage.Paused, "first snapshot", half, false},
		{env.Etcd, outage.Paused, "first snapshot", half, false},
		{env.Temporal, outage.Stopped, "first snapshot", half, false},
		{env.Temporal, outage.Paused, "first snapshot", half, false},
		{env.KubeAPIServer, outage.Stopped, "seen", half, false},
		{env.KubeAPIServer, outage.Stopped, "agents made", half, false},
		{env.KubeAPIServer, outage.Stopped, "planned", half, false},
		{env.KubeAPIServer, outage.Paused, "planned", half, false},
		{env.KubeAPIServer, outage.Stopped, "started", half, false},
		{env.KubeAPIServer, outage.Paused, "started", half, false},
		{env.Temporal, outage.Stopped, "started", half, false},
		{env.KubeAPIServer, outage.Stopped, "published", half, false},
		{env.KubeAPIServer, outage.Stopped, "first snapshot", minute, false},
		{env.KubeAPIServer, outage.Paused, "first snapshot", minute, false},
		{env.Etcd, outage.Paused, "first snapshot", minute, false},
		{env.Temporal, outage.Stopped, "first snapshot", minute, false},
		{env.KubeAPIServer, outage.Stopped, "first snapshot", five, false},
		{env.KubeAPIServer, outage.Paused, "first snapshot", five, false},
		{env.Temporal, outage.Stopped, "first snapshot", five, false},
	}
}

// An outage at a phase change of a new backup: soon after its end, and the first snapshot's, the status is right, and the same
// comes of it as when nothing happens. All cases share what is away, so none is parallel.
func TestOutagesDuringAFirstSnapshot(t *testing.T) {
	r := theRig(t)
	b := undisturbed(t, r, created)
	for _, o := range phaseOutages() {
		if !sample.Whole() {
			if !o.sampled {
				continue
			}
			o.lasting = firstSnapshot
		}
		t.Run(fmt.Sprintf("%s %s %s, %s", o.component, o.how, o.lasting, o.at), func(t *testing.T) {
			withCase(t, r, func(c *testCase) { c.runInto(b, o) })
		})
	}
}

func (c *testCase) runInto(b *baseline, o phaseOutage) {
	c.t.Helper()
	require.NoError(c.t, c.sim.Control(c.database, func(control *fdbsim.Control) { control.FirstSnapshot = firstSnapshot }))
	over := make(chan error, 1)
	moment := outage.Moment{Point: phases[o.at], Occurrence: 1}
	c.Driver.At(moment, c.Outage(c.t.Context(), o.component, o.how, o.lasting, over))
	c.Driver.Arm()
	b.act(c)
	require.NoError(c.t, outage.Await(over, patience+o.lasting, moment.String()+", and the outage"))
	back := time.Now()
	written := c.awaitSnapshot()
	c.await(b.want, c.reconciled)
	took := time.Since(latest(back, written))
	c.t.Logf("right %s after the outage of %s and the first snapshot", took.Round(time.Second/10), o.lasting)
	if sample.Whole() { // on a busy machine this proves nothing
		assert.Less(c.t, took, settled, "from the outage's and the first snapshot's end to the right status")
	}
	c.requireSame(b.left, c.effects(b.scenario))
}

// awaitSnapshot waits for the end of the first snapshot and returns when that was.
func (c *testCase) awaitSnapshot() (end time.Time) {
	c.t.Helper()
	c.await("the first snapshot is written", func() bool {
		all, err := c.sim.FirstSnapshots(c.database)
		if err != nil || len(all) == 0 || all[0].End.IsZero() {
			return false
		}
		end = all[0].End
		return true
	})
	return end
}

func latest(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}
	return other
}
