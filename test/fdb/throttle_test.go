package fdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// many is how many backups are created at once.
func many() int {
	if sample.Whole() {
		return 20
	}
	return 6
}

// With the limits as they are, one first snapshot and one expiration run at a time in a Kubernetes cluster. It is one crowd of
// backups, with one stack to itself.
func TestOneAtATime(t *testing.T) {
	require.NoError(t, stack.Component(env.FDBWorker).Stop())
	careful, err := stack.StartFDBWorker(t.Context(), "worker-careful", append(workerArgs(), // the limits are the defaults: 1
		"--fdb-status-interval=2s", "--fdb-expiry-min-interval=5s", "--fdb-expiry-retry-interval=2s", "--fdb-expiry-timeout=15s")...)
	require.NoError(t, err)
	defer func() {
		require.NoError(t, careful.Stop())
		require.NoError(t, stack.Component(env.FDBWorker).Restart(t.Context()))
	}()
	c := newCrowd(t)
	t.Run("first snapshots", c.firstSnapshots)
	t.Run("expirations", c.expirations)
	t.Run("the queue comes back", c.comesBack)
	t.Run("a first snapshot that stands still", standingStill)
}

// crowd is many backups of as many databases, with different policies.
type crowd struct {
	*tenant
	databases []string
	backups   []*fdbv1alpha1.FoundationDBBackup
}

// stuck is the number of the one whose first expiration hangs.
const stuck = 3

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{tenant: newTenant(t), databases: make([]string, many()), backups: make([]*fdbv1alpha1.FoundationDBBackup, many())}
	for i := range c.databases {
		c.databases[i] = c.cluster(fmt.Sprintf("one-%d", i))
	}
	require.NoError(t, sim.SetFault(c.databases[stuck], "fdbbackup expire", fdbsim.Fault{Hang: true, Times: 1}))
	var created sync.WaitGroup
	for i := range c.backups {
		minimum := ""
		if i%2 == 0 {
			minimum = "4s"
		}
		created.Go(func() {
			c.backups[i] = c.backUp(fmt.Sprintf("one-%d", i), policy(fmt.Sprintf("%ds", 20+3*i), minimum))
		})
	}
	created.Wait()
	return c
}

// firstSnapshots: the workflow of the backup in its first snapshot is killed, and all end restorable, one after the other.
func (c *crowd) firstSnapshots(t *testing.T) {
	x := c.in(t)
	x.holderIsKilled(c.backups)
	for _, backup := range c.backups {
		x.awaitFor(manyPatience, backup, "reconciled", reconciled)
	}
	var all []fdbsim.Interval
	for _, database := range c.databases {
		some, err := sim.FirstSnapshots(database)
		require.NoError(t, err)
		all = append(all, some...)
	}
	require.Len(t, all, len(c.databases))
	slices.SortFunc(all, func(a, b fdbsim.Interval) int { return a.Begin.Compare(b.Begin) })
	for i := 1; i < len(all); i++ {
		require.False(t, all[i].Begin.Before(all[i-1].End), "two at a time: %+v and %+v", all[i-1], all[i])
	}
}

// holderIsKilled terminates the workflow of the backup that is in its first snapshot: the watcher starts it again, and nobody
// starves.
func (x *tenant) holderIsKilled(backups []*fdbv1alpha1.FoundationDBBackup) {
	x.t.Helper()
	eventually.Succeeds(x.t, patience, func() error {
		for _, backup := range backups {
			present, err := x.read(backup)
			if err != nil {
				return err
			}
			if state(fdbv1alpha1.ReasonInitialSnapshot)(present) {
				ctx, cancel := context.WithTimeout(x.t.Context(), callPatience)
				defer cancel()
				id := contract.WorkflowID(stack.ClusterID(), contract.KindFDBBackup, contract.ObjectRef{
					Namespace: backup.Namespace, Name: backup.Name, UID: string(backup.UID),
				})
				return temporal.TerminateWorkflow(ctx, id, "", "killed by a test")
			}
		}
		return errors.New("no backup is in its first snapshot")
	})
}

// standingStill: a first snapshot that does not move gives its slot back, says so, and counts again when it moves.
func standingStill(t *testing.T) {
	x := newTenant(t)
	database := x.cluster("stuck")
	require.NoError(t, sim.Control(database, func(c *simControl) { c.StopSnapshots = true }))
	backup := x.backUp("stuck")
	x.await(backup, "stalled", state(fdbv1alpha1.ReasonSnapshotStalled))
	x.cluster("free")
	x.await(x.backUp("free"), "another one has its turn", reconciled)
	require.NoError(t, sim.Control(database, func(c *simControl) { c.StopSnapshots = false }))
	x.await(backup, "reconciled", reconciled)
}
