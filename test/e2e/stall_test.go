package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// stallTimeout is the worker's --velero-stall-timeout in this test.
const stallTimeout = 30 * time.Second

// veleroReconnect is how long Velero's watches may take after an outage; it must answer for a stall to be told. Their
// backoff grows to a minute, and the first attempts may meet an API server that is still starting.
const veleroReconnect = 2 * time.Minute

// manyObjects keep Velero busy long enough for a test to act meanwhile.
const manyObjects = 1000

// Velero's own patch to its final phase is tried for 39 seconds and then given up for ever (Velero #7207). Velero puts the
// backup into the store, the API server is away just long enough, and the object stays InProgress until Velero restarts.
func TestAFinalStatusThatVeleroLostIsTold(t *testing.T) {
	api, s3, velero := stack.Component(env.KubeAPIServer), stack.Component(env.S3), stack.Component(env.Velero)
	t.Cleanup(func() { _ = s3.Resume() })
	require.NoError(t, stack.Component(env.Worker).Stop())
	t.Cleanup(func() { require.NoError(t, stack.Component(env.Worker).Restart(context.Background())) })
	const impatient = "worker-impatient"
	started(t, stack.StartWorker, impatient, "--velero-stall-timeout="+stallTimeout.String())
	x := newTenant(t, "erin")
	require.NoError(t, stack.Seed(t.Context(), x.namespace, manyObjects))
	nab := x.backUp("lost")
	progress := func(ok func(*velerov1.BackupProgress) bool) {
		require.Eventually(t, func() bool {
			made := veleroBackupsOf(t, x.namespace)
			return len(made) == 1 && made[0].Status.Progress != nil && ok(made[0].Status.Progress)
		}, patience, 20*time.Millisecond)
	}
	progress(func(now *velerov1.BackupProgress) bool { return now.TotalItems >= manyObjects })
	require.NoError(t, s3.Pause()) // Velero goes on with the items and then waits for the store
	made := veleroBackupsOf(t, x.namespace)[0].Name
	require.Zero(t, files(t, made), "paused too late: Velero had finished")
	progress(func(now *velerov1.BackupProgress) bool { return now.ItemsBackedUp == now.TotalItems })
	require.NoError(t, api.Stop())
	require.NoError(t, s3.Resume())
	require.Eventually(t, func() bool { return files(t, made) > 5 }, patience, 100*time.Millisecond)
	time.Sleep(45 * time.Second) // Velero's last attempt comes 39 seconds after its first
	require.NoError(t, api.Restart(t.Context()))
	back := time.Now()

	x.awaitFor(stallTimeout+veleroReconnect, nab, "condition VeleroStalled", func(now *oadpv1alpha1.NonAdminBackup) bool {
		stalled := condition(now, oadpv1alpha1.NonAdminConditionVeleroStalled)
		return stalled != nil && strings.Contains(stalled.Message, "restart Velero") &&
			veleroPhase(now) == velerov1.BackupPhaseInProgress
	})
	t.Logf("told %s after the API server's return", time.Since(back).Round(100*time.Millisecond))
	assert.Equal(t, velerov1.BackupPhaseInProgress, veleroBackup(t, made).Status.Phase, "Velero has lost its last word")
	awaitDetails(t, nab, "should restart Velero")
	assert.Contains(t, metricsOf(t, impatient), "holdfast_velero_stalled_total 1\n")
	awaitEvent(t, nab, "VeleroStalled")
	var requests velerov1.DownloadRequestList
	require.NoError(t, admin.List(t.Context(), &requests))
	assert.Empty(t, requests.Items, "signed URLs are not left behind")

	require.NoError(t, velero.Restart(t.Context()))
	done := x.awaitVeleroPhase(nab, velerov1.BackupPhaseFailed)
	assert.Nil(t, condition(done, oadpv1alpha1.NonAdminConditionVeleroStalled))
	record(t, nab)
}

// metricsOf reads a process's metrics page.
func metricsOf(t *testing.T, component string) string {
	t.Helper()
	return ask(t, http.MethodGet, "http://"+stack.Component(component).Address(env.AddressMetrics)+"/metrics", nil)
}

// awaitEvent waits for an Event on the object.
func awaitEvent(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, reason string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var list eventsv1.EventList
		if admin.List(context.Background(), &list, client.InNamespace(nab.Namespace)) != nil {
			return false
		}
		for i := range list.Items {
			if list.Items[i].Regarding.Name == nab.Name && list.Items[i].Reason == reason {
				return true
			}
		}
		return false
	}, patience, 200*time.Millisecond, "no Event %s", reason)
}
