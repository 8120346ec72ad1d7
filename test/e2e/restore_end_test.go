package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// A restore that is deleted while Velero is at work goes when Velero is through with it, and holds up nobody: Velero tries for
// minutes to write to one that is gone.
func TestARestoreIsDeletedInItsMiddle(t *testing.T) {
	x := newTenant(t, "heidi")
	require.NoError(t, stack.Seed(t.Context(), x.namespace, 600))
	nab := x.completed("nightly")
	velero := stack.Component(env.Velero)
	t.Cleanup(func() { _ = velero.Resume() })
	emptied(t, x)
	nar := x.restore("given-up", nab.Name)
	awaitBegun(t, nar)
	require.NoError(t, velero.Pause())
	require.Equal(t, velerov1.RestorePhaseInProgress, veleroRestore(t, restoreID(nar)).Status.Phase, "paused too late")
	require.NoError(t, x.client.Delete(t.Context(), nar.DeepCopy()))
	x.awaitRestore(nar, "Deleting", func(now *restoring) bool {
		deleting := restoreCondition(now, oadpv1alpha1.NonAdminConditionDeleting)
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseDeleting && deleting != nil &&
			deleting.Message == oadpv1alpha1.MessageRestoreDeletionAccepted
	})
	assert.True(t, veleroRestore(t, restoreID(nar)).DeletionTimestamp.IsZero())
	require.NoError(t, velero.Resume())
	x.awaitRestoreGone(nar)
	checkNothingOf(t, nar)
	assert.Len(t, configMaps(t, x.namespace), 600, "what was restored stays")
	recordRestore(t, nar)
	other := newTenant(t, "bob")
	next := other.restore("next", other.completed("nightly").Name)
	asked := time.Now()
	next = other.awaitFinalized(next)
	checkTook(t, "the next restore", time.Since(asked), 30*time.Second)
	recordRestore(t, next)
}

// awaitBegun waits until Velero is at work.
func awaitBegun(t *testing.T, nar *restoring) {
	t.Helper()
	awaitObject(t, admin, &velerov1.Restore{ObjectMeta: inOADP(restoreID(nar))}, patience, "in progress",
		func(now *velerov1.Restore, there bool) bool {
			return there && now.Status.Phase == velerov1.RestorePhaseInProgress
		})
}

// checkNothingOf waits until nothing is left of what was made for a restore, in the cluster and in the bucket.
func checkNothingOf(t *testing.T, nar *restoring) {
	t.Helper()
	of := inOADP(restoreID(nar))
	awaitAllGone(t, &velerov1.Restore{ObjectMeta: of}, &corev1.ConfigMap{ObjectMeta: of})
	awaitSuccess(t, func(context.Context) error {
		left, err := stack.Objects("velero/restores/" + restoreID(nar) + "/")
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("in the bucket there is still %v", left)
		}
		return err
	})
}

// emptied deletes what Seed has put into the namespace.
func emptied(t *testing.T, x *tenant) {
	t.Helper()
	require.NoError(t, x.client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, inNamespace(x.namespace), seeded))
	require.Empty(t, configMaps(t, x.namespace))
}

// A namespace that is deleted must not hang on a restore, whether or not Velero has ended it.
func TestANamespaceIsDeletedWhileRestoring(t *testing.T) {
	x := newTenant(t, "alice")
	nab := x.completed("nightly")
	done := x.awaitFinalized(x.restore("done", nab.Name))
	velero := stack.Component(env.Velero)
	t.Cleanup(func() { _ = velero.Resume() })
	require.NoError(t, velero.Pause())
	nar := x.awaitRestoreCreated(x.restore("under-way", nab.Name))
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
	require.NoError(t, admin.Delete(t.Context(), space))
	awaitAllGone(t, space) // else it waits for Velero, which stands still
	require.NoError(t, velero.Resume())
	for _, each := range []*restoring{done, nar} {
		checkNothingOf(t, each)
		recordRestore(t, each)
	}
	assert.NotZero(t, files(t, nab.Status.VeleroBackup.Name), "the backup's data stay")
}

// Velero, killed in mid-restore, calls the restore Failed when it starts again. That is shown, and nothing is finalized.
func TestVeleroIsKilledInMidRestore(t *testing.T) {
	x := newTenant(t, "bob")
	require.NoError(t, stack.Seed(t.Context(), x.namespace, 600))
	nab := x.completed("nightly")
	emptied(t, x)
	velero := stack.Component(env.Velero)
	t.Cleanup(func() {
		if !velero.Running() {
			require.NoError(t, velero.Restart(context.Background()))
		}
	})
	nar := x.restore("cut-off", nab.Name)
	awaitBegun(t, nar)
	require.NoError(t, velero.Kill())
	require.Equal(t, velerov1.RestorePhaseInProgress, veleroRestore(t, restoreID(nar)).Status.Phase, "killed too late")
	x.awaitRestorePhase(nar, velerov1.RestorePhaseInProgress)
	require.NoError(t, velero.Restart(t.Context()))
	now := x.awaitRestorePhase(nar, velerov1.RestorePhaseFailed)
	assert.Contains(t, now.Status.VeleroRestore.Status.FailureReason, "during the server starting")
	recordRestore(t, nar)
	require.NoError(t, x.client.Get(t.Context(), keyOf(nar), now))
	assert.Nil(t, now.Status.Finalization)
	assert.Zero(t, now.Status.QueueInfo.EstimatedQueuePosition)

	again := x.awaitFinalizedAs(x.restore("again", nab.Name), oadpv1alpha1.FinalizationPhaseCompleted)
	assert.Len(t, configMaps(t, x.namespace), 600)
	recordRestore(t, again)
}
