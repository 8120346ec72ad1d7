package rebuild_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// The cluster is rebuilt over the same buckets: the namespace gets its backups back, and a restore from them works.
func TestBackupsComeBackAfterARebuild(t *testing.T) {
	r := newRig(t)
	const namespace = "shop"
	require.NoError(t, r.CreateTenant(t.Context(), namespace, "alice"))
	require.NoError(t, r.Seed(t.Context(), namespace, 3))
	alice := r.clientFor("alice")
	account, err := r.CreateAccount(t.Context(), "shop-bucket")
	require.NoError(t, err)
	r.locate(alice, namespace, account)
	first := r.backUp(alice, namespace, "nightly", "")
	second := r.backUp(alice, namespace, "offsite", "own")
	before := r.configMaps(namespace)
	require.NotEmpty(t, before)

	r.veleroLooks(t)
	synchronized(r) // until then what the tenant's store may bring back is held back
	collected(t, r)

	require.NoError(t, r.Rebuild(t.Context()))
	r.policy("backupSyncPeriod: 10s\n")
	var nabs oadpv1alpha1.NonAdminBackupList
	require.NoError(t, r.admin.List(t.Context(), &nabs))
	require.Empty(t, nabs.Items, "nothing of the old cluster is there")
	require.NoError(t, r.CreateTenant(t.Context(), namespace, "alice"))
	r.awaitCollectionWaits(t)
	r.veleroLooks(t)
	result := run[contract.CollectionResult](r, contract.KindCollection.Workflow, contract.CollectionInput{Cluster: r.ClusterID()})
	assert.Empty(t, result.Deleted, "what Velero brought back is no orphan")

	again := r.awaitCompleted(namespace, "nightly")
	assert.NotEqual(t, first.UID, again.UID)
	assert.Equal(t, first.Status.VeleroBackup.Name, again.Status.VeleroBackup.Name)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, again.Status.Phase)
	assert.Empty(t, again.Spec.BackupSpec.StorageLocation)

	r.locate(alice, namespace, account) // as the tenant's manifests say; its UID, and so its name for Velero, is another
	synchronized(r)
	offsite := r.awaitCompleted(namespace, "offsite")
	assert.Equal(t, second.Status.VeleroBackup.Name, offsite.Status.VeleroBackup.Name)
	assert.Equal(t, "own", offsite.Spec.BackupSpec.StorageLocation)

	for _, name := range []string{"nightly", "offsite"} {
		r.restore(alice, namespace, name)
		assert.Equal(t, before, r.configMaps(namespace), "restored from %s", name)
		for each := range before {
			require.NoError(t, alice.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: each}}))
		}
	}
}

// veleroLooks has Velero look for backups in the administrator's storage location: its server takes a minute to. `make test-long`
// waits for that.
func (r *rig) veleroLooks(t *testing.T) {
	t.Helper()
	if !sample.Whole() {
		require.NoError(t, r.SyncBackups(t.Context(), env.DefaultStorageLocation))
	}
}

// synchronized has Holdfast look into the tenants' locations.
func synchronized(r *rig) {
	run[contract.SynchronizationResult](r, contract.KindSynchronization.Workflow, contract.ScheduledInput{Cluster: r.ClusterID()})
}

// awaitCollectionWaits: what Velero has not brought back yet might be taken for gone, so a collection says what it waits for.
func (r *rig) awaitCollectionWaits(t *testing.T) {
	t.Helper()
	started := r.start(contract.KindCollection.Workflow, contract.CollectionInput{Cluster: r.ClusterID()})
	location := &velerov1.BackupStorageLocation{}
	key := client.ObjectKey{Namespace: env.OADPNamespace, Name: env.DefaultStorageLocation}
	r.awaitSuccess(func(ctx context.Context) error {
		if err := r.admin.Get(ctx, key, location); err != nil || location.Status.LastSyncedTime != nil {
			return err // or Velero was quicker than the collection
		}
		answer, err := r.temporal.QueryWorkflow(ctx, started.GetID(), started.GetRunID(), connect.QueryMetadata)
		if err != nil {
			return err
		}
		var metadata sdkpb.WorkflowMetadata
		if err := answer.Get(&metadata); err != nil {
			return err
		}
		want, said := "for Velero to list the backups in "+env.DefaultStorageLocation, metadata.GetCurrentDetails()
		if !strings.Contains(said, want) {
			return fmt.Errorf("the collection says %q, not %q", said, want)
		}
		return nil
	})
	_ = r.temporal.TerminateWorkflow(t.Context(), started.GetID(), started.GetRunID(), "seen to wait") // else it has ended
}

// locate gives the tenant a storage location "own" in the account's bucket and waits until Velero can use it.
func (r *rig) locate(as client.Client, namespace string, account env.Account) {
	r.t.Helper()
	require.NoError(r.t, as.Create(r.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, Data: map[string][]byte{"cloud": account.CredentialsFile()},
	}))
	location := &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
		Spec: oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: &velerov1.BackupStorageLocationSpec{
			Provider: "aws",
			Config:   map[string]string{"region": r.Storage().Region, "s3ForcePathStyle": "true", "s3Url": r.Storage().Endpoint},
			Credential: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "cloud",
			},
			StorageType:         velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: account.Bucket}},
			BackupSyncPeriod:    &metav1.Duration{Duration: time.Second},
			ValidationFrequency: &metav1.Duration{Duration: time.Second},
		}},
	}
	require.NoError(r.t, as.Create(r.t.Context(), location))
	r.awaitSuccess(func(ctx context.Context) error {
		err := r.admin.Get(ctx, client.ObjectKeyFromObject(location), location)
		made := location.Status.VeleroBackupStorageLocation
		if err == nil && (made == nil || made.Status == nil || made.Status.Phase != velerov1.BackupStorageLocationPhaseAvailable) {
			err = fmt.Errorf("the location is not Available: %+v", location.Status)
		}
		return err
	})
}

func (r *rig) restore(as client.Client, namespace, backup string) {
	r.t.Helper()
	nar := &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "from-" + backup},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: backup}},
	}
	require.NoError(r.t, as.Create(r.t.Context(), nar))
	r.awaitSuccess(func(ctx context.Context) error {
		err := r.admin.Get(ctx, client.ObjectKeyFromObject(nar), nar)
		if err == nil && (nar.Status.Finalization == nil || !nar.Status.Finalization.Phase.Final()) {
			err = fmt.Errorf("the restore from %s is not finalized: %+v", backup, nar.Status)
		}
		return err
	})
	require.Equal(r.t, velerov1.RestorePhaseCompleted, nar.Status.VeleroRestore.Status.Phase)
}
