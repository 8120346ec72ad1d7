package fdb_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/workflows/contract"
)

// many is how many backups are created at once.
const many = 20

// At most one first snapshot runs at a time in a Kubernetes cluster, unless an operator allows more.
func TestOneFirstSnapshotAtATime(t *testing.T) {
	needsStandIn(t)
	require.NoError(t, stack.Component(env.FDBWorker).Stop())
	careful, err := stack.StartFDBWorker(t.Context(), "worker-careful", workerArgs(sim.BinDir)...) // with the limit's default
	require.NoError(t, err)
	defer func() {
		require.NoError(t, careful.Stop())
		require.NoError(t, stack.Component(env.FDBWorker).Restart(t.Context()))
	}()
	t.Run("twenty backups of twenty databases", manyBackupsAtOnce)
	t.Run("a first snapshot that stands still", standingStill)
}

// manyBackupsAtOnce: all are created at once, the workflow of one in its first snapshot is killed, and all end restorable, one after
// the other.
func manyBackupsAtOnce(t *testing.T) {
	x := newTenant(t)
	databases := make([]string, many)
	for i := range many {
		databases[i] = x.cluster(fmt.Sprintf("many-%d", i))
	}
	backups := make([]*fdbv1alpha1.FoundationDBBackup, many)
	var created sync.WaitGroup
	for i := range many {
		created.Go(func() { backups[i] = x.backUp(fmt.Sprintf("many-%d", i)) })
	}
	created.Wait()
	x.holderIsKilled(backups)
	for _, backup := range backups {
		x.awaitFor(manyPatience, backup, "reconciled", reconciled)
	}
	var all []fdbsim.Interval
	for _, database := range databases {
		some, err := sim.FirstSnapshots(database)
		require.NoError(t, err)
		all = append(all, some...)
	}
	require.Len(t, all, many)
	slices.SortFunc(all, func(a, b fdbsim.Interval) int { return a.Begin.Compare(b.Begin) })
	for i := 1; i < len(all); i++ {
		require.False(t, all[i].Begin.Before(all[i-1].End), "two at a time: %+v and %+v", all[i-1], all[i])
	}
}

// holderIsKilled terminates the workflow of the backup that is in its first snapshot: the watcher starts it again, and nobody
// starves.
func (x *tenant) holderIsKilled(backups []*fdbv1alpha1.FoundationDBBackup) {
	x.t.Helper()
	for {
		for _, backup := range backups {
			if state(fdbv1alpha1.ReasonInitialSnapshot)(x.get(backup)) {
				id := contract.WorkflowID(stack.ClusterID(), contract.KindFDBBackup, contract.ObjectRef{
					Namespace: backup.Namespace, Name: backup.Name, UID: string(backup.UID),
				})
				require.NoError(x.t, temporal.TerminateWorkflow(x.t.Context(), id, "", "killed by a test"))
				return
			}
		}
		require.NoError(x.t, x.t.Context().Err())
	}
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
