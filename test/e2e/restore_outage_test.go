package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// Velero's own patch to its final phase is lost in the same way as for a backup (Velero #7207): the store holds the results, the object
// says InProgress until Velero starts again.
func TestAFinalStatusOfARestoreThatVeleroLostIsTold(t *testing.T) {
	sample.InLong(t, "TestAFinalStatusThatWasLostIsTold")
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
	awaitObject(t, admin, &velerov1.Restore{ObjectMeta: inOADP(restoreID(nar))}, patience, "under way",
		func(now *velerov1.Restore, there bool) bool {
			return there && now.Status.Progress != nil && now.Status.Progress.TotalItems >= manyObjects
		})
	require.NoError(t, s3.Pause()) // Velero goes on with the items and then waits for the store
	folder := "velero/restores/" + restoreID(nar) + "/"
	stored, err := stack.Objects(folder)
	require.NoError(t, err)
	require.Empty(t, stored, "paused too late: Velero had finished")
	awaitSuccess(t, func(ctx context.Context) error {
		restored, err := readConfigMaps(ctx, x.namespace)
		if err == nil && len(restored) != manyObjects {
			err = fmt.Errorf("%d objects of %d are restored", len(restored), manyObjects)
		}
		return err
	})
	require.NoError(t, api.Stop())
	require.NoError(t, s3.Resume())
	awaitFiles(t, folder, 3)
	time.Sleep(45 * time.Second) // Velero's last attempt comes 39 seconds after its first
	require.NoError(t, api.Restart(t.Context()))
	back := time.Now()

	x.toldOfLostRestore(nar, stallTimeout+veleroReconnect+patience)
	t.Logf("told %s after the API server's return", time.Since(back).Round(100*time.Millisecond))
	require.NoError(t, velero.Restart(t.Context()))
	x.restoreFailedByVelero(nar)
}
