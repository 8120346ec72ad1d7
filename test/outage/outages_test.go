package outage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/process/points"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

// An outage that begins while a step is about to be taken: the step runs into it. The same comes of it as when nothing
// happens. All cases share what is away, so none is parallel.
func TestOutagesAtAPoint(t *testing.T) {
	lasting := 8 * time.Second
	if outage.Long() {
		lasting = 30 * time.Second // Velero tries its own patches for 40 seconds; what it loses after that no one gets back
	}
	r := theRig(t)
	before := func(step string, occurrence int) outage.Moment {
		return outage.Moment{Point: points.Point{Step: step, Form: points.Local}, Occurrence: occurrence}
	}
	// Not stopped later: Velero, in the middle of a backup, may fail it then, or lose its end (see TestAFinalStatusThatVeleroLostIsTold).
	tests := []struct {
		scenario  string
		component string
		how       string
		moment    outage.Moment
	}{
		{"create", env.KubeAPIServer, "paused", before(contract.ActivityStartBackup, 1)},
		{"create", env.KubeAPIServer, "stopped", before(contract.ActivityStartBackup, 1)},
		{"create", env.KubeAPIServer, "paused", before(contract.ActivityRefreshBackup, 2)},
		{"create", env.Temporal, "paused", before(contract.ActivityStartBackup, 1)},
		{"create", env.Temporal, "stopped", before(contract.ActivityRefreshBackup, 2)},
		{"create", env.Temporal, "stopped without its database", before(contract.ActivityRefreshBackup, 2)},
		{"create", env.Etcd, "paused", before(contract.ActivityStartBackup, 1)},
		{"ask for a storage location", env.KubeAPIServer, "stopped", before(contract.ActivityAdmitLocation, 1)},
		{"approve a storage location", env.KubeAPIServer, "paused", before(contract.ActivitySyncLocation, 1)},
		{"approve a storage location", env.Temporal, "stopped without its database", before(contract.ActivityAdvanceApproval, 1)},
		{"revoke a storage location", env.KubeAPIServer, "stopped", before(contract.ActivityAdvanceApproval, 1)},
		{"delete a storage location with a backup in it", env.KubeAPIServer, "stopped", before(contract.ActivityReleaseLocation, 1)},
	}
	undisturbedOnce := map[string]effects{}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s, %s %s %s", test.scenario, test.component, test.how, test.moment), func(t *testing.T) {
			s := scenarioOf(t, test.scenario)
			if _, found := undisturbedOnce[s.name]; !found {
				undisturbedOnce[s.name], _ = undisturbed(t, r, s)
			}
			c := newCase(t, r)
			c.runInto(s, test.moment, test.component, test.how, lasting)
			c.await(s.wish, func() bool { return s.done(c) })
			assert.Equal(t, undisturbedOnce[s.name], c.effects())
		})
	}
}

// runInto runs a scenario in which an outage begins at a moment, until that is over.
func (c *testCase) runInto(s scenario, moment outage.Moment, component, how string, lasting time.Duration) {
	c.t.Helper()
	s.before(c)
	over := make(chan error, 1)
	c.Driver.At(moment, c.outage(component, how, lasting, over))
	c.Driver.Arm()
	s.act(c)
	select {
	case err := <-over:
		require.NoError(c.t, err)
	case <-time.After(patience + lasting):
		c.t.Fatalf("%s never came", moment)
	}
	// Velero's own watches take minutes to come back; what runs next does not wait for them.
	c.t.Cleanup(func() { require.NoError(c.t, c.stack.Component(env.Velero).Restart(context.Background())) })
}

func scenarioOf(t *testing.T, name string) scenario {
	t.Helper()
	at := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
	require.NotEqual(t, -1, at, name)
	return scenarios[at]
}

// outage returns an action that begins an outage and lets go; it ends by itself.
func (c *testCase) outage(component, how string, lasting time.Duration, over chan<- error) outage.Action {
	begin := c.Outage(c.t.Context(), component, how, lasting, over)
	return func() error {
		err := begin()
		if err == nil && strings.HasSuffix(how, "without its database") {
			err = c.loseTemporalsDatabase()
		}
		return err
	}
}

func (c *testCase) loseTemporalsDatabase() error {
	c.forgotten = true
	files, err := filepath.Glob(filepath.Join(c.stack.Dir(), "data", "temporal.db*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("Temporal's database is not where it was: %w", err)
	}
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// While Temporal is away tenants go on creating backups; all complete afterwards.
func TestTemporalAwayWhileBackupsAreCreated(t *testing.T) {
	const count, lasting = 50, time.Minute
	r := theRig(t)
	c := newCase(t, r)
	begun, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- outage.StopFor(context.WithoutCancel(t.Context()), r.stack.Component(env.Temporal), lasting, begun)
	}()
	<-begun
	var nabs []*oadpv1alpha1.NonAdminBackup
	for i := range count {
		c.backUpAs(fmt.Sprintf("while-away-%02d", i))
		nabs = append(nabs, c.nab)
	}
	require.NoError(t, <-over)
	back := time.Now()
	const each = 5 * time.Second // Velero backs up one after the other, in an order of its own
	require.Eventually(t, func() bool {
		for _, c.nab = range nabs {
			if !c.completed() {
				return false
			}
		}
		return true
	}, patience+count*each, time.Second, "all complete")
	for _, c.nab = range nabs {
		c.await("Completed", c.completed)
	}
	assert.Len(t, c.effects().Backups, count, "one Velero Backup each")
	say(t, "%d backups created during %s without Temporal; all complete %s after its return", count, lasting,
		time.Since(back).Round(time.Second))
}
