package e2e_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// Velero has ended the restore; the API server goes away before Holdfast has seen it. Velero's status is shown within 15 seconds of
// its return, and the finalization follows. `make test-long` runs the longer ones too.
func TestOutageAroundTheEndOfARestore(t *testing.T) {
	api := stack.Component(env.KubeAPIServer)
	outages := map[string]struct {
		down, up func(context.Context) error
	}{
		"stopped": {down: func(context.Context) error { return api.Stop() }, up: api.Restart},
		"paused": {
			down: func(context.Context) error { return api.Pause() },
			up:   func(context.Context) error { return api.Resume() },
		},
	}
	for name, outage := range outages {
		for i, lasting := range []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute} {
			t.Run(name+" for "+lasting.String(), func(t *testing.T) {
				if (i > 0 || name == "paused") && os.Getenv("HOLDFAST_TEST_LONG") == "" {
					t.Skip("make test-long runs it")
				}
				// Velero's own watches take minutes to come back; what runs next does not wait for them.
				t.Cleanup(func() { require.NoError(t, stack.Component(env.Velero).Restart(context.Background())) })
				x := newTenant(t, "erin")
				nar := x.restoredUnseen("terminal", x.completed("nightly"))
				require.NoError(t, outage.down(t.Context()))
				require.NoError(t, stack.Component(env.Worker).Resume())
				require.NoError(t, stack.Component(env.Watcher).Resume())
				time.Sleep(lasting) // the outage itself
				require.NoError(t, outage.up(t.Context()))
				back := time.Now()
				x.awaitRestorePhase(nar, velerov1.RestorePhaseCompleted)
				assert.Less(t, time.Since(back), catchUp)
				t.Logf("right %s after the API server's return", time.Since(back).Round(100*time.Millisecond))
				x.awaitFinalizedAs(nar, oadpv1alpha1.FinalizationPhaseCompleted)
				t.Logf("finalized %s after the API server's return", time.Since(back).Round(100*time.Millisecond))
				recordRestore(t, nar)
			})
		}
	}
}

// restoredUnseen returns a restore that Velero has completed while worker and watcher stood still; they still do.
func (x *tenant) restoredUnseen(name string, nab *oadpv1alpha1.NonAdminBackup) *restoring {
	x.t.Helper()
	components := []string{env.Velero, env.Worker, env.Watcher}
	x.t.Cleanup(func() {
		for _, component := range components {
			_ = stack.Component(component).Resume()
		}
	})
	require.NoError(x.t, stack.Component(env.Velero).Pause())
	nar := x.awaitRestoreCreated(x.restore(name, nab.Name))
	require.NoError(x.t, stack.Component(env.Worker).Pause())
	require.NoError(x.t, stack.Component(env.Watcher).Pause())
	require.NoError(x.t, stack.Component(env.Velero).Resume())
	require.Eventually(x.t, func() bool {
		made := veleroRestore(x.t, restoreID(nar))
		return made != nil && made.Status.Phase == velerov1.RestorePhaseCompleted
	}, patience, 100*time.Millisecond)
	require.NoError(x.t, admin.Get(x.t.Context(), keyOf(nar), nar))
	require.NotEqual(x.t, velerov1.RestorePhaseCompleted, restorePhase(nar), "Holdfast has not seen it")
	return nar
}

// Velero's own patch to its final phase is lost in the same way as for a backup (Velero #7207): the store holds the results, the object
// says InProgress until Velero starts again.
func TestAFinalStatusOfARestoreThatVeleroLostIsTold(t *testing.T) {
	if os.Getenv("HOLDFAST_TEST_LONG") == "" {
		t.Skip("make test-long runs it")
	}
	api, s3, velero := stack.Component(env.KubeAPIServer), stack.Component(env.S3), stack.Component(env.Velero)
	t.Cleanup(func() { _ = s3.Resume() })
	require.NoError(t, stack.Component(env.Worker).Stop())
	t.Cleanup(func() { require.NoError(t, stack.Component(env.Worker).Restart(context.Background())) })
	started(t, stack.StartWorker, "worker-impatient-of-restores", "--velero-stall-timeout="+stallTimeout.String())
	x := newTenant(t, "erin")
	require.NoError(t, stack.Seed(t.Context(), x.namespace, manyObjects))
	nab := x.completed("nightly")
	emptied(t, x)
	nar := x.restore("lost", nab.Name)
	progress := func(ok func(*velerov1.RestoreProgress) bool) {
		require.Eventually(t, func() bool {
			made := veleroRestore(t, restoreID(nar))
			return made != nil && made.Status.Progress != nil && ok(made.Status.Progress)
		}, patience, 20*time.Millisecond)
	}
	progress(func(now *velerov1.RestoreProgress) bool { return now.TotalItems >= manyObjects })
	require.NoError(t, s3.Pause()) // Velero goes on with the items and then waits for the store
	folder := "velero/restores/" + restoreID(nar) + "/"
	stored := func() int {
		objects, err := stack.Objects(folder)
		require.NoError(t, err)
		return len(objects)
	}
	require.Zero(t, stored(), "paused too late: Velero had finished")
	require.Eventually(t, func() bool { return len(configMaps(t, x.namespace)) == manyObjects }, patience, 100*time.Millisecond)
	require.NoError(t, api.Stop())
	require.NoError(t, s3.Resume())
	require.Eventually(t, func() bool { return stored() >= 3 }, patience, 100*time.Millisecond)
	time.Sleep(45 * time.Second) // Velero's last attempt comes 39 seconds after its first
	require.NoError(t, api.Restart(t.Context()))
	back := time.Now()

	x.awaitRestoreFor(stallTimeout+veleroReconnect, nar, "condition VeleroStalled", func(now *restoring) bool {
		stalled := restoreCondition(now, oadpv1alpha1.NonAdminConditionVeleroStalled)
		return stalled != nil && strings.Contains(stalled.Message, "restart Velero") &&
			restorePhase(now) == velerov1.RestorePhaseInProgress
	})
	t.Logf("told %s after the API server's return", time.Since(back).Round(100*time.Millisecond))
	assert.Equal(t, velerov1.RestorePhaseInProgress, veleroRestore(t, restoreID(nar)).Status.Phase, "Velero has lost its last word")
	var requests velerov1.DownloadRequestList
	require.NoError(t, admin.List(t.Context(), &requests))
	assert.Empty(t, requests.Items, "signed URLs are not left behind")

	require.NoError(t, velero.Restart(t.Context()))
	done := x.awaitRestorePhase(nar, velerov1.RestorePhaseFailed)
	assert.Nil(t, restoreCondition(done, oadpv1alpha1.NonAdminConditionVeleroStalled))
	assert.Nil(t, done.Status.Finalization)
	recordRestore(t, nar)
}
