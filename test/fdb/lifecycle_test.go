package fdb_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// The life of a backup, through the API alone: created, restorable, paused, resumed, modified, moved, stopped, started again and
// deleted.
// objectiveIs: condition ObjectiveMet has that status and reason, beside a backup that is as its spec says.
func objectiveIs(status metav1.ConditionStatus, reason string) func(*fdbv1alpha1.FoundationDBBackup) bool {
	return func(o *fdbv1alpha1.FoundationDBBackup) bool {
		condition := meta.FindStatusCondition(o.Status.Conditions, fdbv1alpha1.ConditionObjectiveMet)
		return condition != nil && condition.Status == status && condition.Reason == reason && o.Status.Reconciled
	}
}

func TestTheLifeOfABackup(t *testing.T) { onBoth(t, theLifeOfABackup) }

func theLifeOfABackup(t *testing.T, x *tenant) {
	database := x.cluster("orders")
	backup := x.backUp("orders")

	first := x.await(backup, "restorable", restorable)
	x.requireReady("fdbb", backup)
	require.Len(t, first.Status.Backups, 1)
	made := first.Status.Backups[0]
	assert.Equal(t, "RunningDifferentially", made.State)
	assert.Equal(t, x.version(), x.get(backup).Annotations[fdbv1alpha1.AnnotationClusterVersion])
	t.Log(x.kubectl("get", "fdbb"))
	later := x.await(backup, "latest restorable moves by itself", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return latest(o) > latest(first)
	})
	assert.Equal(t, made.URL, later.Status.Backups[0].URL)

	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) {
		spec.Objective = &fdbv1alpha1.BackupObjective{RecoveryPoint: "1h"}
	})
	x.await(backup, "its objective met", objectiveIs(metav1.ConditionTrue, "Met"))
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStatePaused })
	x.await(backup, "paused", reconciled)
	x.await(backup, "its objective is not judged", objectiveIs(metav1.ConditionUnknown, "Paused"))
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
	if x.servers == nil || sample.Whole() { // FoundationDB's first snapshot takes 35 s, each time
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
		assert.Len(t, slices.DeleteFunc(calls, fdbsim.Call.Dry), starts, "once each")
	}
}
