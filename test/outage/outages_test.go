package outage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/test/outage/points"
	"holdfast.dev/holdfast/workflows/contract"
)

// An outage that begins while a step is about to be taken: the step runs into it. The same comes of it as when nothing
// happens. All cases share what is away, so none is parallel.
func TestOutagesAtAPoint(t *testing.T) {
	lasting := 8 * time.Second
	if long() {
		lasting = 30 * time.Second // Velero tries its own patches for 40 seconds; what it loses after that no one gets back
	}
	r := theRig(t)
	create := scenarios[0]
	want, _ := undisturbed(t, r, create)
	before := func(step string, occurrence int) outage.Moment {
		return outage.Moment{Point: points.Point{Step: step, Form: points.Local}, Occurrence: occurrence}
	}
	// Not stopped later: Velero, in the middle of a backup, may fail it then, or lose its end (see TestAFinalStatusThatVeleroLostIsTold).
	tests := []struct {
		component string
		how       string
		moment    outage.Moment
	}{
		{env.KubeAPIServer, "paused", before(contract.ActivityStartBackup, 1)},
		{env.KubeAPIServer, "stopped", before(contract.ActivityStartBackup, 1)},
		{env.KubeAPIServer, "paused", before(contract.ActivityRefreshBackup, 2)},
		{env.Temporal, "paused", before(contract.ActivityStartBackup, 1)},
		{env.Temporal, "stopped", before(contract.ActivityRefreshBackup, 2)},
		{env.Temporal, "stopped without its database", before(contract.ActivityRefreshBackup, 2)},
		{env.Etcd, "paused", before(contract.ActivityStartBackup, 1)},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %s %s", test.component, test.how, test.moment), func(t *testing.T) {
			c := newCase(t, r)
			over := make(chan error, 1)
			c.driver.At(test.moment, c.outage(test.component, test.how, lasting, over))
			c.driver.Arm()
			create.act(c)
			require.NoError(t, <-over)
			c.await(create.wish, c.completed)
			assert.Equal(t, want, c.effects())
		})
	}
}

// outage returns an action that begins an outage and lets go; it ends by itself.
func (c *testCase) outage(component, how string, lasting time.Duration, over chan<- error) outage.Action {
	process := c.stack.Component(component)
	return func() error {
		begun := make(chan struct{})
		go func() {
			ctx := context.WithoutCancel(c.t.Context())
			if how == "paused" {
				over <- outage.PauseFor(process, lasting, begun)
				return
			}
			over <- outage.StopFor(ctx, process, lasting, begun)
		}()
		<-begun
		if strings.HasSuffix(how, "without its database") {
			return c.loseTemporalsDatabase()
		}
		return nil
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
	for _, c.nab = range nabs {
		c.await("Completed", c.completed)
	}
	assert.Len(t, c.effects().Backups, count, "one Velero Backup each")
	say(t, "%d backups created during %s without Temporal; all complete %s after its return", count, lasting,
		time.Since(back).Round(time.Second))
}
