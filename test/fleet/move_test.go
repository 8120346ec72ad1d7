package fleet_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tenants"
	"holdfast.dev/holdfast/workflows/contract"
)

// synchronize does at once what a cluster's Schedule does every two minutes.
func synchronize(t *testing.T, cluster *env.Env) {
	t.Helper()
	id := cluster.ClusterID()
	run, err := tenants.Temporal(t, cluster).ExecuteWorkflow(t.Context(), temporalclient.StartWorkflowOptions{
		ID: id + "-sync-by-hand", TaskQueue: contract.TaskQueue(id),
	}, contract.KindSynchronization.Workflow, contract.ScheduledInput{Cluster: id})
	require.NoError(t, err)
	require.NoError(t, run.Get(t.Context(), nil))
}

// locate makes the tenant's storage location in the account's bucket, and waits until Velero can use it.
func locate(in *tenants.Namespace, account env.Account, access velerov1.BackupStorageLocationAccessMode) {
	in.T.Helper()
	in.CreateLocation("offsite", account, func(spec *velerov1.BackupStorageLocationSpec) { spec.AccessMode = access })
	in.Await(func(ctx context.Context) error {
		location := &oadpv1alpha1.NonAdminBackupStorageLocation{}
		if err := in.Tenant.Get(ctx, client.ObjectKey{Namespace: in.Name, Name: "offsite"}, location); err != nil {
			return err
		}
		made := location.Status.VeleroBackupStorageLocation
		if made == nil || made.Status == nil || made.Status.Phase != velerov1.BackupStorageLocationPhaseAvailable {
			return fmt.Errorf("the location is not available: %+v", location.Status)
		}
		return nil
	})
}

// A tenant has the same bucket as its location in two clusters: what one has backed up, the other restores. docs/fleet.md.
func TestATenantRestoresInAnotherCluster(t *testing.T) {
	all := theFleet(t)
	const namespace, backup = "mover", "evening"
	account, err := all[west].CreateAccount(t.Context(), "movers-bucket")
	require.NoError(t, err)
	from := all.in(t, west, namespace, 3)
	locate(from, account, "")
	from.BackUp(backup, "offsite")
	made := from.AwaitEnd(backup).Status.VeleroBackup.Name

	to := all.in(t, east, namespace, 0)
	locate(to, account, velerov1.BackupStorageLocationAccessModeReadOnly)
	synchronize(t, to.Env)
	assert.Equal(t, made, to.AwaitEnd(backup).Status.VeleroBackup.Name, "the same backup")
	restore := &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "arrival"},
		Spec: oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{
			BackupName: backup, RestorePVs: ptr.To(false),
		}},
	}
	require.NoError(t, to.Tenant.Create(t.Context(), restore))
	to.Await(func(ctx context.Context) error {
		err := to.Tenant.Get(ctx, client.ObjectKeyFromObject(restore), restore)
		restored := restore.Status.VeleroRestore
		if err == nil && (restored == nil || restored.Status == nil || restored.Status.Phase != velerov1.RestorePhaseCompleted) {
			err = fmt.Errorf("the restore is not completed: %+v", restore.Status)
		}
		return err
	})
	assert.Equal(t, from.ConfigMaps(), to.ConfigMaps())
	assert.Len(t, from.Made()[backup], 1, "it stays where it was")
}

// A tenant who has the name of another cluster's namespace, and not its bucket, sees nothing of its backups.
func TestANameInAnotherClusterGivesNoBackups(t *testing.T) {
	all := theFleet(t)
	const namespace = "namesake"
	has := all.in(t, west, namespace, 1)
	has.BackUp("nightly", "")
	has.AwaitEnd("nightly")

	other := all.in(t, north, namespace, 0)
	require.NoError(t, other.SyncBackups(t.Context(), env.DefaultStorageLocation))
	synchronize(t, other.Env)
	var found oadpv1alpha1.NonAdminBackupList
	require.NoError(t, other.Tenant.List(t.Context(), &found, client.InNamespace(namespace)))
	assert.Empty(t, found.Items)
	assert.Empty(t, other.Made())
}
