package fdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// The life of a backup, through the API alone: created, restorable, paused, resumed, modified, moved, stopped, started again and
// deleted.
func TestTheLifeOfABackup(t *testing.T) { onBoth(t, theLifeOfABackup) }

func theLifeOfABackup(t *testing.T, x *tenant) {
	database := x.cluster("orders")
	backup := x.backUp("orders")

	first := x.await(backup, "reconciled", reconciled)
	x.requireReady("fdbb", backup)
	require.Len(t, first.Status.Backups, 1)
	made := first.Status.Backups[0]
	assert.Equal(t, "RunningDifferentially", made.State)
	require.NotNil(t, made.LatestRestorable)
	require.NotNil(t, made.OldestData)
	assert.Equal(t, x.version(), x.get(backup).Annotations[fdbv1alpha1.AnnotationClusterVersion])
	t.Log(x.kubectl("get", "fdbb"))
	later := x.await(backup, "latest restorable moves by itself", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return o.Status.Backups[0].LatestRestorable.Version > made.LatestRestorable.Version
	})
	assert.Equal(t, made.URL, later.Status.Backups[0].URL)

	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStatePaused })
	x.await(backup, "paused", reconciled)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateRunning })
	x.await(backup, "resumed", reconciled)

	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.SnapshotPeriodSeconds = 3600 })
	x.await(backup, "modified", reconciled)

	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Path += "/moved" })
	moved := x.await(backup, "moved", reconciled)
	require.Len(t, moved.Status.Backups, 2)
	assert.Equal(t, "Aborted", moved.Status.Backups[0].State)
	assert.Contains(t, moved.Status.Backups[1].URL, "/moved-")
	starts := 2

	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateStopped })
	x.await(backup, "stopped", reconciled)
	if x.servers == nil || long() { // FoundationDB's first snapshot takes 35 s, each time
		x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateRunning })
		starts++
		again := x.await(backup, "started again", reconciled)
		require.Len(t, again.Status.Backups, starts)
	}

	require.NoError(t, x.client.Delete(t.Context(), backup))
	x.awaitGone(backup)
	if x.servers == nil {
		calls, err := sim.CallsOf(database, "fdbbackup", "start")
		require.NoError(t, err)
		assert.Len(t, calls, starts, "once each")
	}
}
