package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/buckets"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// syncPatience is how long Velero may take to look into a location: it does so once a minute.
const syncPatience = 3 * time.Minute

// lookInto has Velero look for backups in a storage location, by its name for Velero. `make test-long` waits for its server's
// turn where it has one: a tenant's location it looks into only where an administrator wants it.
func lookInto(t *testing.T, location string) {
	t.Helper()
	if location != env.DefaultStorageLocation || !sample.Whole() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, stack.SyncBackups(ctx, location))
	}
}

// awaitBroughtBack waits until Velero has a Backup of the name.
func awaitBroughtBack(t *testing.T, name string) {
	t.Helper()
	awaitObject(t, admin, &velerov1.Backup{ObjectMeta: inOADP(name)}, syncPatience, "Velero has it",
		func(_ *velerov1.Backup, there bool) bool { return there })
}

// synchronized runs a synchronization now, beside those that the Schedule starts.
func synchronized(t *testing.T) contract.SynchronizationResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run, err := temporal.ExecuteWorkflow(ctx, temporalclient.StartWorkflowOptions{
		ID: fmt.Sprintf("sync-by-hand-%08x", rand.Uint32()), TaskQueue: contract.TaskQueue(stack.ClusterID()),
	}, contract.KindSynchronization.Workflow, contract.ScheduledInput{Cluster: stack.ClusterID()})
	require.NoError(t, err)
	var result contract.SynchronizationResult
	require.NoError(t, run.Get(ctx, &result))
	return result
}

// entryOf returns the ledger's entry of a Velero Backup, empty if there is none.
func entryOf(t require.TestingT, name string) string {
	var parts corev1.ConfigMapList
	require.NoError(t, admin.List(context.Background(), &parts, client.InNamespace(env.OADPNamespace), client.HasLabels{ledger.Label}))
	for _, part := range parts.Items {
		if text := part.Data[name]; text != "" {
			return text
		}
	}
	return ""
}

func (x *tenant) there(name string) bool {
	x.t.Helper()
	err := admin.Get(x.t.Context(), types.NamespacedName{Namespace: x.namespace, Name: name}, &oadpv1alpha1.NonAdminBackup{})
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(x.t, err)
	return true
}

// What somebody has let go without its data is not offered again, until an administrator says so.
func TestAReleasedBackupComesBackOnlyByAnAdministrator(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		release func(*tenant, *oadpv1alpha1.NonAdminBackup)
	}{
		"by force": {ledger.ByForce, func(x *tenant, nab *oadpv1alpha1.NonAdminBackup) {
			x.patch(nab, `{"spec":{"forceDeleteBackup":true}}`)
			x.awaitGone(nab)
		}},
		"with its namespace, which is there again": {ledger.ByNamespace, func(x *tenant, _ *oadpv1alpha1.NonAdminBackup) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
			require.NoError(x.t, admin.Delete(x.t.Context(), namespace))
			awaitAllGone(x.t, namespace)
			newTenantIn(x.t, "bob", x.namespace)
		}},
		"by taking the finalizer off": {ledger.Unnoticed, func(x *tenant, nab *oadpv1alpha1.NonAdminBackup) {
			x.delete(nab)
			x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionDeleting, oadpv1alpha1.ReasonDeletionPending)
			x.patch(nab, `{"metadata":{"finalizers":null}}`)
			x.awaitGone(nab)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTenant(t, "bob")
			nab := x.completed("kept")
			made := nab.Status.VeleroBackup.Name
			test.release(x, nab)
			lookInto(t, env.DefaultStorageLocation)
			awaitBroughtBack(t, made) // or Velero has it still
			for range 2 {
				synchronized(t)
				require.False(t, x.there("kept"), "it was let go")
			}
			assert.Contains(t, entryOf(t, made), fmt.Sprintf(`"reason":%q`, test.reason))
			assert.NotZero(t, files(t, made), "the data stay")

			forgive := fmt.Sprintf(`{"data":{%q:null}}`, made)
			require.NoError(t, admin.Patch(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: ledger.ConfigMapName},
			}, client.RawPatch(types.MergePatchType, []byte(forgive))))
			synchronized(t)
			again := x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
			assert.NotEqual(t, nab.UID, again.UID)
			assert.Equal(t, made, again.Labels[oadpv1alpha1.NabSyncLabel])
			assert.Equal(t, made, again.Status.VeleroBackup.Name)
			awaitEnd(t, again)
			x.patch(again, `{"spec":{"deleteBackup":true}}`)
			x.awaitGone(again)
			checkDeleted(t, made, false)
			synchronized(t)
			assert.False(t, x.there("kept"), "what was deleted with its data does not come back")
		})
	}
}

// A file of 3 GB in a tenant's bucket once took 16 GB of memory from the Velero that serves everybody. Velero knows no backup whose
// files it could not bear to read, and knows it again when they are what they were.
func TestWhatIsTooLargeForVeleroIsKeptFromIt(t *testing.T) {
	t.Parallel()
	x, account := newTenant(t, "bob"), newAccount(t)
	location := x.own(account)
	x.change(location, `{"spec":{"backupStorageLocationSpec":{"backupSyncPeriod":"1s"}}}`)
	x.awaitAvailable(location)
	made := &velerov1.BackupStorageLocation{}
	key := types.NamespacedName{Namespace: env.OADPNamespace, Name: nacuuid(location)}
	require.NoError(t, admin.Get(t.Context(), key, made))
	require.Equal(t, &metav1.Duration{}, made.Spec.BackupSyncPeriod, "Velero does not read it by itself")

	name := "e-large-" + uuid.NewString()
	own := func(made *velerov1.Backup) {
		made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = x.namespace
		made.Annotations[oadpv1alpha1.NabOriginNameAnnotation] = "large"
	}
	forge(t, account, x.namespace, name, own)
	require.NoError(t, os.Truncate(filepath.Join(account.Dir, x.namespace, "backups", name, "velero-backup.json"), 3<<30))
	awaitSuccess(t, func(ctx context.Context) error {
		synchronized(t)
		return eventSaid(ctx, x.client, location, "BackupWithheld", name)
	})
	assert.False(t, x.there("large"))
	key.Name = name
	require.True(t, apierrors.IsNotFound(admin.Get(t.Context(), key, &velerov1.Backup{})))

	forge(t, account, x.namespace, name, own)
	awaitSuccess(t, func(ctx context.Context) error {
		synchronized(t)
		return x.client.Get(ctx, types.NamespacedName{Namespace: x.namespace, Name: "large"}, &oadpv1alpha1.NonAdminBackup{})
	})
	assert.NotEmpty(t, veleroBackup(t, name).Annotations[buckets.FilesAnnotation])

	nab := x.completedInto("good", "own")
	name = nab.Status.VeleroBackup.Name
	list := filepath.Join(account.Dir, x.namespace, "backups", name, name+"-volumeinfo.json.gz")
	content, err := os.ReadFile(list)
	require.NoError(t, err)
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	_, err = packed.Write(make([]byte, 17<<20))
	require.NoError(t, errors.Join(err, packed.Close()))
	require.NoError(t, os.WriteFile(list, bomb.Bytes(), 0o644))
	accepted := func(want metav1.ConditionStatus) {
		awaitSuccess(t, func(ctx context.Context) error {
			synchronized(t)
			if err := x.client.Get(ctx, client.ObjectKeyFromObject(nab), nab); err != nil {
				return err
			}
			if found := condition(nab, oadpv1alpha1.NonAdminConditionAccepted); found.Status != want {
				return fmt.Errorf("Accepted is %+v", found)
			}
			return nil
		})
	}
	accepted(metav1.ConditionFalse)
	assert.Nil(t, veleroBackup(t, name), "a list that grew was given to Velero")
	require.NoError(t, os.WriteFile(list, content, 0o644))
	accepted(metav1.ConditionTrue)
	assert.Equal(t, velerov1.BackupPhaseCompleted, veleroBackup(t, name).Status.Phase)

	require.NoError(t, os.WriteFile(list, bomb.Bytes(), 0o644))
	x.awaitRestoreRefused(x.restore("from-large", nab.Name), oadpv1alpha1.ReasonInvalidRestoreSpec,
		"its Velero Backup does not exist")
	assert.Nil(t, veleroBackup(t, name), "it was read before Velero could")
	x.remove(location)
}
