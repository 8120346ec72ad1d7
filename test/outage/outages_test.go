package outage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// sharedOutage is one outage with all its subjects inside: each has come to its moment when it begins.
type sharedOutage struct {
	component, how string
	subjects       []meant
	// busy: a tenant goes on creating backups meanwhile.
	busy bool
	// inLong: in make test-long only; test/e2e has one of it.
	inLong bool
	// inTurns: the administrator's policy gives one turn at a time.
	inTurns bool
}

// meant is a step of a scenario that is about to be taken.
type meant struct {
	scenario, step, of string
	occurrence         int // the first one, if zero
}

func (m meant) moment() outage.Moment {
	return outage.Moment{Point: failpoint.Point{Step: m.step, Form: failpoint.Local, Of: m.of}, Occurrence: max(m.occurrence, 1)}
}

var (
	aboutToCreate   = meant{scenario: "create", step: contract.RefreshBackup.Name}
	aboutToRefuse   = meant{scenario: "an invalid edit after the end", step: contract.AdmitBackup.Name}
	aboutToMirror   = meant{scenario: "create", step: contract.RefreshBackup.Name, occurrence: 2}
	aboutToAsk      = meant{scenario: "ask for a storage location", step: contract.AdmitLocation.Name}
	aboutToSync     = meant{scenario: "approve a storage location", step: contract.SyncLocation.Name}
	aboutToApprove  = meant{scenario: "approve a storage location", step: contract.AdvanceApproval.Name}
	aboutToRevoke   = meant{scenario: "revoke a storage location", step: contract.AdvanceApproval.Name}
	aboutToRelease  = meant{scenario: "delete a storage location with a backup in it", step: contract.ReleaseLocation.Name}
	aboutToRestore  = meant{scenario: "restore with warnings", step: contract.StartRestore.Name}
	aboutToFinalize = meant{scenario: "restore with warnings", step: contract.RecordFinalization.Name, of: "volumes"}
	aboutToDownload = meant{scenario: "download a log", step: contract.RequestDownload.Name}
	aboutToWait     = meant{scenario: turnScenarios[0].name, step: contract.RefreshBackup.Name}
	aboutToReturn   = meant{scenario: turnScenarios[1].name, step: contract.ReturnTurn.Name}
	aboutToThinOut  = meant{scenario: "a plan's two runs, of which it keeps one", step: contract.DeletePlanBackup.Name}
)

// The API server is not stopped later: Velero, in the middle of a backup, may fail it then, or lose its end (see
// TestAFinalStatusThatVeleroLostIsTold).
var sharedOutages = []sharedOutage{
	{component: env.KubeAPIServer, how: outage.Paused, subjects: []meant{aboutToCreate, aboutToMirror, aboutToSync, aboutToDownload, aboutToAsk}},
	{
		component: env.KubeAPIServer, how: outage.Stopped, inLong: true,
		subjects: []meant{aboutToCreate, aboutToRefuse, aboutToAsk, aboutToRevoke, aboutToRelease, aboutToFinalize},
	},
	{component: env.Etcd, how: outage.Paused, subjects: []meant{aboutToCreate, aboutToApprove, aboutToRestore, aboutToRefuse}},
	{component: env.Temporal, how: outage.Paused, subjects: []meant{aboutToCreate, aboutToRevoke, aboutToFinalize}},
	{component: env.Temporal, how: outage.Stopped, subjects: []meant{aboutToMirror, aboutToRelease, aboutToDownload}, busy: true},
	{component: env.Temporal, how: withoutDatabase, subjects: []meant{aboutToMirror, aboutToApprove, aboutToRestore, aboutToThinOut}},
	// One case at a time: see eachScenario.
	{component: env.KubeAPIServer, how: outage.Paused, subjects: []meant{aboutToWait}, inTurns: true},
	{component: env.KubeAPIServer, how: outage.Stopped, subjects: []meant{aboutToReturn}, inTurns: true, inLong: true},
	{component: env.Temporal, how: withoutDatabase, subjects: []meant{aboutToWait}, inTurns: true},
}

// withoutDatabase is how Temporal is away and has lost everything when it comes back.
const withoutDatabase = "stopped without its database"

// String names it for people.
func (o sharedOutage) String() string {
	if o.inTurns {
		return o.component + " " + o.how + ", in turns"
	}
	return o.component + " " + o.how
}

func (o sharedOutage) concerns(s scenario) bool {
	return (!o.inLong || sample.Whole()) && slices.ContainsFunc(o.subjects, func(m meant) bool { return m.scenario == s.name })
}

// lasting is how long it is away, and how many backups are created meanwhile.
func (o sharedOutage) lasting() (time.Duration, int) {
	switch {
	case !sample.Whole():
		return 8 * time.Second, 10
	case o.busy:
		return time.Minute, 50
	}
	return 30 * time.Second, 0 // Velero tries its own patches for 40 seconds; what it loses after that no one gets back
}

// An outage that begins while steps are about to be taken: all run into it. The same comes of each as when nothing happens.
func TestOutagesAtAPoint(t *testing.T) {
	r := theRig(t)
	t.Run("undisturbed", func(t *testing.T) {
		for _, s := range scenarios {
			if ordinary(s) && slices.ContainsFunc(sharedOutages, func(o sharedOutage) bool { return o.concerns(s) }) {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					undisturbed(t, r, s)
				})
			}
		}
	})
	for _, o := range sharedOutages {
		t.Run(o.String(), func(t *testing.T) { o.run(t, r) })
	}
}

// happening is a shared outage for those inside.
type happening struct {
	sharedOutage
	over chan struct{}
	back time.Time // when it was over
	err  error
}

// run has all subjects come to their moments, begins the outage, and compares what comes of each.
func (o sharedOutage) run(t *testing.T, r *rig) {
	t.Helper()
	sample.Case(t, !o.inLong)
	if o.inTurns {
		giveTurns(t, r)
	}
	var h *happening
	var parts []outage.Part
	for _, m := range o.subjects {
		undisturbed(t, r, scenarioOf(t, m.scenario)) // where -run has left that part out
		parts = append(parts, outage.Part{
			Name: m.scenario + " " + m.moment().String(),
			Run: func(t *testing.T, attempts *outage.Attempts, ready, there *outage.Guest) {
				t.Helper()
				h.runInto(newCase(t, r, attempts), m, ready, there)
			},
		})
	}
	if o.busy {
		parts = append(parts, outage.Part{
			Name: "backups created meanwhile",
			Run: func(t *testing.T, attempts *outage.Attempts, ready, there *outage.Guest) {
				t.Helper()
				h.createMeanwhile(newCase(t, r, attempts), ready, there)
			},
		})
	}
	outage.RepeatTogether(parts, func(subjects []outage.Subject) {
		h = &happening{sharedOutage: o, over: make(chan struct{})}
		h.disturb(t, r, subjects)
	})
}

// disturb runs the subjects, into the outage, and returns when it is over.
func (h *happening) disturb(t *testing.T, r *rig, subjects []outage.Subject) {
	t.Helper()
	lasting, _ := h.lasting()
	returned := make(chan error, 1)
	begin := r.outage(t.Context(), h.component, h.how, lasting, returned)
	happened := outage.Together(t, subjects, func() error {
		go func() {
			h.err = <-returned
			h.back = time.Now()
			close(h.over)
		}()
		return begin()
	})
	if happened {
		h.await(t)
		require.NoError(t, h.err)
	}
	if h.component != env.Temporal {
		require.NoError(t, r.renewVelero())
	}
}

// renewVelero spares what comes next the minutes that Velero's own watches take to come back.
func (r *rig) renewVelero() error { return r.stack.Component(env.Velero).Restart(context.Background()) }

// runInto runs a scenario until the outage has begun at its moment and is over, and compares what comes of it.
func (h *happening) runInto(c *testCase, m meant, ready, there *outage.Guest) {
	c.t.Helper()
	s := scenarioOf(c.t, m.scenario)
	c.forgotten = h.how == withoutDatabase
	s.before(c)
	c.Driver.At(m.moment(), there.Come)
	require.NoError(c.t, ready.Come())
	c.Driver.Arm()
	s.act(c)
	h.await(c.t)
	c.await(s.want, func() bool { return s.done(c) })
	waiting, err := c.Driver.Pending()
	require.NoError(c.t, err)
	require.Empty(c.t, waiting, "it never came, so that the outage did not meet it there")
	took := time.Since(h.back)
	if m == aboutToFinalize {
		c.requireSettled(took, "from the outage's end to the final status")
	}
	c.requireSame(baselines[s.name].left, c.effects())
	say(c.t, "as undisturbed %s after the outage", took.Round(time.Second/10))
}

func (h *happening) await(t *testing.T) {
	t.Helper()
	lasting, _ := h.lasting()
	select {
	case <-h.over:
	case <-time.After(patience + lasting):
		require.FailNow(t, "the outage never began or never ended")
	}
}

// createMeanwhile creates backups while Temporal is away; all complete afterwards.
func (h *happening) createMeanwhile(c *testCase, ready, there *outage.Guest) {
	c.t.Helper()
	_, count := h.lasting()
	require.NoError(c.t, ready.Come())
	require.NoError(c.t, there.Come())
	var nabs []*oadpv1alpha1.NonAdminBackup
	for i := range count {
		select {
		case <-h.over: // a slow machine: fewer meet it
		default:
			c.backUpAs(fmt.Sprintf("while-away-%02d", i))
			nabs = append(nabs, c.nab)
		}
	}
	require.NotEmpty(c.t, nabs, "the outage was over before any was created")
	count = len(nabs)
	h.await(c.t)
	const each = 5 * time.Second // Velero backs up one after the other, in an order of its own
	c.awaitFor(patience+time.Duration(count)*each, "all complete", func() bool {
		return !slices.ContainsFunc(nabs, func(nab *oadpv1alpha1.NonAdminBackup) bool {
			c.nab = nab
			return !c.completed()
		})
	})
	for _, c.nab = range nabs {
		c.await("Completed", c.completed)
	}
	assert.Len(c.t, c.effects().Backups, count, "one Velero Backup each")
	say(c.t, "%d backups created without Temporal; all complete %s after its return", count, time.Since(h.back).Round(time.Second))
}

// runInto runs a scenario in which an outage begins at a moment, until that is over.
func (c *testCase) runInto(s scenario, moment outage.Moment, component, how string, lasting time.Duration) {
	c.t.Helper()
	s.before(c)
	over := make(chan error, 1)
	c.forgotten = how == withoutDatabase
	c.Driver.At(moment, c.outage(c.t.Context(), component, how, lasting, over))
	c.Driver.Arm()
	s.act(c)
	select {
	case err := <-over:
		require.NoError(c.t, err)
	case <-time.After(patience + lasting):
		c.t.Fatalf("%s never came", moment)
	}
	c.t.Cleanup(func() { require.NoError(c.t, c.renewVelero()) })
}

func scenarioOf(t *testing.T, name string) scenario {
	t.Helper()
	at := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
	require.NotEqual(t, -1, at, name)
	return scenarios[at]
}

// outage returns an action that begins an outage and lets go; it ends by itself.
func (r *rig) outage(ctx context.Context, component, how string, lasting time.Duration, over chan<- error) outage.Action {
	begin := outage.BeginOutage(ctx, r.stack.Component(component), how, lasting, over)
	return func() error {
		if how == withoutDatabase {
			if err := env.RecordHistories(ctx, r.temporal); err != nil { // while they are there
				return err
			}
		}
		err := begin()
		if err == nil && how == withoutDatabase {
			err = r.loseTemporalsDatabase()
		}
		return err
	}
}

func (r *rig) loseTemporalsDatabase() error {
	files, err := filepath.Glob(filepath.Join(r.stack.Dir(), "data", "temporal.db*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("Temporal's database is not where it was: %w", err)
	}
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
