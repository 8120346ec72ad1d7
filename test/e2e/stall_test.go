package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
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
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// stallTimeout is the worker's --velero-stall-timeout where Velero really loses its last word.
const stallTimeout = 30 * time.Second

// veleroReconnect is how long Velero's watches may take after an outage; it must answer for a stall to be told. Their
// backoff grows to a minute, and the first attempts may meet an API server that is still starting.
const veleroReconnect = 2 * time.Minute

// manyObjects keep Velero busy long enough for a test to act meanwhile.
const manyObjects = 1000

// The state that Velero leaves when its last patch is lost, written by hand: the store holds everything, the object says InProgress
// until Velero starts again. The tests below have Velero lose it, which takes minutes.
func TestAFinalStatusThatWasLostIsTold(t *testing.T) {
	const impatient = "worker-told-of-losses"
	require.NoError(t, stack.Component(env.Worker).Stop())
	t.Cleanup(func() { require.NoError(t, stack.Component(env.Worker).Restart(context.Background())) })
	started(t, stack.StartWorker, impatient, "--velero-stall-timeout=15s") // the least that it takes
	var x *tenant
	var nab *oadpv1alpha1.NonAdminBackup
	var nar *restoring
	repeated(t, "erin", func(with *tenant) {
		x = with
		nightly := x.completed("nightly")
		unseen(t, impatient, func() {
			nab = x.created("lost")
			nar = x.awaitRestoreCreated(x.restore("lost", nightly.Name))
		}, func() {
			x.awaitCompletedByVelero(nab)
			awaitRestoredByVelero(t, nar)
		})
	})
	for _, object := range []client.Object{veleroBackup(t, nab.Status.VeleroBackup.Name), veleroRestore(t, restoreID(nar))} {
		require.NoError(t, admin.Patch(t.Context(), object, mergePatch(`{"status":{"phase":"InProgress","completionTimestamp":null}}`)))
	}
	require.NoError(t, stack.Component(impatient).Resume())
	require.NoError(t, stack.Component(env.Watcher).Resume())

	x.toldOfLoss(nab, patience)
	x.toldOfLostRestore(nar, patience)
	checkStalls(t, impatient, 2)
	x.failedByVelero(nab)
	x.restoreFailedByVelero(nar)
}

// toldOfLoss waits until somebody is told that Velero has finished a backup and does not say so.
func (x *tenant) toldOfLoss(nab *oadpv1alpha1.NonAdminBackup, limit time.Duration) {
	x.t.Helper()
	now := x.awaitFor(limit, nab, "condition VeleroStalled", func(now *oadpv1alpha1.NonAdminBackup) bool {
		stalled := condition(now, oadpv1alpha1.NonAdminConditionVeleroStalled)
		return stalled != nil && strings.Contains(stalled.Message, "restart Velero") &&
			veleroPhase(now) == velerov1.BackupPhaseInProgress
	})
	assert.Equal(x.t, velerov1.BackupPhaseInProgress, veleroBackup(x.t, now.Status.VeleroBackup.Name).Status.Phase,
		"Velero has lost its last word")
	awaitDetails(x.t, nab, "should restart Velero")
	awaitEvent(x.t, nab, "VeleroStalled")
	checkNoSignedURL(x.t)
}

// toldOfLostRestore is toldOfLoss for a restore.
func (x *tenant) toldOfLostRestore(nar *restoring, limit time.Duration) {
	x.t.Helper()
	x.awaitRestoreFor(limit, nar, "condition VeleroStalled", func(now *restoring) bool {
		stalled := restoreCondition(now, oadpv1alpha1.NonAdminConditionVeleroStalled)
		return stalled != nil && strings.Contains(stalled.Message, "restart Velero") &&
			restorePhase(now) == velerov1.RestorePhaseInProgress
	})
	assert.Equal(x.t, velerov1.RestorePhaseInProgress, veleroRestore(x.t, restoreID(nar)).Status.Phase, "Velero has lost its last word")
	checkNoSignedURL(x.t)
}

// checkNoSignedURL: signed URLs are not left behind.
func checkNoSignedURL(t *testing.T) {
	t.Helper()
	awaitSuccess(t, func(ctx context.Context) error { // a check that is under way has one
		var requests velerov1.DownloadRequestList
		err := admin.List(ctx, &requests)
		if err == nil && len(requests.Items) > 0 {
			err = fmt.Errorf("%d DownloadRequests of Velero's are left", len(requests.Items))
		}
		return err
	})
}

// failedByVelero: Velero starts again, and fails what it finds in progress.
func (x *tenant) failedByVelero(nab *oadpv1alpha1.NonAdminBackup) {
	x.t.Helper()
	require.NoError(x.t, stack.Component(env.Velero).Restart(x.t.Context()))
	done := x.awaitVeleroPhase(nab, velerov1.BackupPhaseFailed)
	assert.Nil(x.t, condition(done, oadpv1alpha1.NonAdminConditionVeleroStalled))
	awaitEnd(x.t, nab)
}

// restoreFailedByVelero: Velero has started again, and failed what it found in progress.
func (x *tenant) restoreFailedByVelero(nar *restoring) {
	x.t.Helper()
	done := x.awaitRestorePhase(nar, velerov1.RestorePhaseFailed)
	assert.Nil(x.t, restoreCondition(done, oadpv1alpha1.NonAdminConditionVeleroStalled))
	assert.Nil(x.t, done.Status.Finalization)
	recordRestore(x.t, nar)
}

// Velero's own patch to its final phase is tried for 39 seconds and then given up for ever (Velero #7207). Velero puts the
// backup into the store, the API server is away just long enough, and the object stays InProgress until Velero restarts.
func TestAFinalStatusThatVeleroLostIsTold(t *testing.T) {
	sample.InLong(t, "TestAFinalStatusThatWasLostIsTold")
	api, s3 := stack.Component(env.KubeAPIServer), stack.Component(env.S3)
	t.Cleanup(func() { _ = s3.Resume() })
	require.NoError(t, stack.Component(env.Worker).Stop())
	t.Cleanup(func() { require.NoError(t, stack.Component(env.Worker).Restart(context.Background())) })
	const impatient = "worker-impatient"
	started(t, stack.StartWorker, impatient, "--velero-stall-timeout="+stallTimeout.String())
	x := newTenant(t, "erin")
	require.NoError(t, stack.Seed(t.Context(), x.namespace, manyObjects))
	nab := x.backUp("lost")
	made := backupID(nab)
	progress := func(want string, ok func(*velerov1.BackupProgress) bool) {
		awaitObject(t, admin, &velerov1.Backup{ObjectMeta: inOADP(made)}, patience, want, func(now *velerov1.Backup, there bool) bool {
			return there && now.Status.Progress != nil && ok(now.Status.Progress)
		})
	}
	progress("under way", func(now *velerov1.BackupProgress) bool { return now.TotalItems >= manyObjects })
	require.NoError(t, s3.Pause()) // Velero goes on with the items and then waits for the store
	require.Zero(t, files(t, made), "paused too late: Velero had finished")
	progress("all items", func(now *velerov1.BackupProgress) bool { return now.ItemsBackedUp == now.TotalItems })
	require.NoError(t, api.Stop())
	require.NoError(t, s3.Resume())
	awaitFiles(t, "velero/backups/"+made+"/", 6)
	time.Sleep(45 * time.Second) // Velero's last attempt comes 39 seconds after its first
	require.NoError(t, api.Restart(t.Context()))
	back := time.Now()

	x.toldOfLoss(nab, stallTimeout+veleroReconnect+patience)
	t.Logf("told %s after the API server's return", time.Since(back).Round(100*time.Millisecond))
	checkStalls(t, impatient, 1)
	x.failedByVelero(nab)
}

// metricsOf reads a process's metrics page.
func metricsOf(t *testing.T, component string) string {
	t.Helper()
	page, err := readMetrics(t.Context(), component)
	require.NoError(t, err)
	return page
}

func readMetrics(ctx context.Context, component string) (string, error) {
	return read(ctx, http.MethodGet, "http://"+stack.Component(component).Address(env.AddressMetrics)+"/metrics", nil)
}

// checkStalls: each stall is counted, and once; on a busy machine an activity whose end nobody took counts it again.
func checkStalls(t *testing.T, component string, want int) {
	t.Helper()
	counted, err := strconv.Atoi(seriesOf(metricsOf(t, component), "holdfast_velero_stalled_total"))
	require.NoError(t, err)
	t.Logf("%d stalls counted", counted)
	assert.GreaterOrEqual(t, counted, want)
	if sample.Whole() {
		assert.Equal(t, want, counted)
	}
}

// awaitEvent waits for an Event on the object.
func awaitEvent(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, reason string) {
	t.Helper()
	awaitSuccess(t, func(ctx context.Context) error { return eventSaid(ctx, admin, nab, reason, "") })
}

// eventSaid is an error while there is no Event on the object, of a reason, whose note holds a text.
func eventSaid(ctx context.Context, as client.Client, of client.Object, reason, text string) error {
	var list eventsv1.EventList
	if err := as.List(ctx, &list, client.InNamespace(of.GetNamespace())); err != nil {
		return err
	}
	var others []string
	for i := range list.Items {
		event := &list.Items[i]
		if event.Regarding.UID != of.GetUID() {
			continue
		}
		if event.Reason == reason && strings.Contains(event.Note, text) {
			return nil
		}
		others = append(others, event.Reason+": "+event.Note)
	}
	return fmt.Errorf("no Event %s with %q on %s/%s, but %q", reason, text, of.GetNamespace(), of.GetName(), others)
}
