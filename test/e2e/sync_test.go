package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
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
	"holdfast.dev/holdfast/activities/synchronization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/k8s/owner"
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

// forge writes a finished Velero Backup into the tenant's own bucket, as its owner may.
func forge(t *testing.T, account env.Account, folder, name string, change func(*velerov1.Backup)) {
	t.Helper()
	now := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	made := &velerov1.Backup{
		TypeMeta: metav1.TypeMeta{APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup"},
		ObjectMeta: owner.Backup.Meta(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: folder, Name: "forged"}},
			name, "velero", name),
		Spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}, TTL: metav1.Duration{Duration: 24 * time.Hour}},
		Status: velerov1.BackupStatus{
			Version: 1, FormatVersion: "1.1.0", Phase: velerov1.BackupPhaseCompleted,
			StartTimestamp: &now, CompletionTimestamp: &now, Expiration: &metav1.Time{Time: time.Now().Add(24 * time.Hour)},
		},
	}
	change(made)
	content, err := json.Marshal(made)
	require.NoError(t, err)
	path := filepath.Join(account.Dir, folder, "backups", name)
	require.NoError(t, os.MkdirAll(path, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(path, "velero-backup.json"), content, 0o644))
}

// A tenant can write anything into its own bucket. It gets nothing by it outside its own namespace.
func TestNothingInABucketMakesBackupsForOthers(t *testing.T) {
	t.Parallel()
	victim := newTenant(t, "carol")
	treasure := victim.completed("treasure")
	x, account := newTenant(t, "bob"), newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)

	named := func(namespace, name string) func(*velerov1.Backup) {
		return func(made *velerov1.Backup) {
			made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = namespace
			made.Annotations[oadpv1alpha1.NabOriginNameAnnotation] = name
		}
	}
	planted, lifted, climbing, own := "a-planted-"+uuid.NewString(), "b-lifted-"+uuid.NewString(), "c-climbing-"+uuid.NewString(),
		"d-own-"+uuid.NewString()
	forge(t, account, x.namespace, planted, named(victim.namespace, "planted"))
	forge(t, account, x.namespace, lifted, func(made *velerov1.Backup) {
		named(victim.namespace, "lifted")(made)
		made.Labels[oadpv1alpha1.NabOriginNACUUIDLabel] = treasure.Status.VeleroBackup.Name
	})
	forge(t, account, x.namespace, climbing, named(x.namespace, "../"+victim.namespace))
	forge(t, account, x.namespace, own, func(made *velerov1.Backup) {
		named(x.namespace, "own")(made)
		made.Labels["evil"], made.Annotations["evil"] = "label", "annotation"
		made.Annotations["holdfast.dev/nab-state"] = "made/" + string(made.UID)
	})
	forge(t, account, x.namespace, treasure.Status.VeleroBackup.Name, named(x.namespace, "stolen"))
	lookInto(t, nacuuid(location))
	for _, name := range []string{planted, lifted, climbing, own} {
		awaitBroughtBack(t, name) // Velero believes it
	}

	result := synchronized(t)
	assert.GreaterOrEqual(t, result.Untrusted, 1)
	for _, name := range []string{"planted", "lifted"} {
		assert.False(t, victim.there(name), "%s in the victim's namespace", name)
	}
	assert.False(t, x.there("stolen"))
	var list oadpv1alpha1.NonAdminBackupList
	require.NoError(t, admin.List(t.Context(), &list, client.InNamespace(x.namespace)))
	require.Len(t, list.Items, 1, "the one that says truly whose it is")
	made := list.Items[0]
	assert.Equal(t, "own", made.Name)
	assert.Equal(t, map[string]string{oadpv1alpha1.NabSyncLabel: own}, made.Labels)
	assert.Empty(t, made.Annotations)
	assert.Equal(t, []string{x.namespace}, made.Spec.BackupSpec.IncludedNamespaces)
	assert.Equal(t, "own", made.Spec.BackupSpec.StorageLocation)
	after := readAgain(t, treasure)
	assert.Equal(t, treasure.UID, after.UID)
	assert.Equal(t, treasure.Status.VeleroBackup.Name, after.Status.VeleroBackup.Name)
	assert.NotContains(t, veleroBackup(t, after.Status.VeleroBackup.Name).Annotations, "evil")
	x.remove(location)
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

// A Velero Backup that has gone may be forged under its old name, in another tenant's bucket and in the name of the object that it
// was made for. Nothing about that object believes it.
func TestAForgedBackupIsNotTakenForOneThatIsGone(t *testing.T) {
	t.Parallel()
	victim := newTenant(t, "carol")
	nab := victim.completed("treasure")
	name := nab.Status.VeleroBackup.Name
	veleroExpires(t, name)
	victim.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonVeleroBackupNotFound)

	x, account := newTenant(t, "bob"), newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)
	forge(t, account, x.namespace, name, func(made *velerov1.Backup) {
		made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = victim.namespace
		made.Annotations[oadpv1alpha1.NabOriginNameAnnotation] = nab.Name
		made.Status.Warnings = 4711
	})
	lookInto(t, nacuuid(location))
	awaitBroughtBack(t, name) // Velero believes it

	refused := victim.restore("from-treasure", nab.Name)
	victim.awaitRestoreRefused(refused, oadpv1alpha1.ReasonInvalidRestoreSpec)
	download := victim.request(velerov1.DownloadTargetKindBackupLog, nab.Name)
	victim.awaitRefusal(download, oadpv1alpha1.NonAdminConditionNonAdminBackupNotAvailable, "has no Velero Backup")
	victim.patch(nab, `{"spec":{"backupSpec":{"ttl":"25h"}}}`)
	after := victim.await(nab, "judged again", func(now *oadpv1alpha1.NonAdminBackup) bool {
		accepted := condition(now, oadpv1alpha1.NonAdminConditionAccepted)
		return now.Generation > nab.Generation && accepted != nil && accepted.ObservedGeneration == now.Generation
	})
	assert.Equal(t, metav1.ConditionFalse, condition(after, oadpv1alpha1.NonAdminConditionAccepted).Status)
	assert.Zero(t, after.Status.VeleroBackup.Status.Warnings, "it is not mirrored")
	synchronized(t)
	assert.Empty(t, veleroBackup(t, name).Annotations[synchronization.StateAnnotation], "nor marked")

	victim.removeRestore(refused)
	victim.drop(download)
	victim.patch(nab, `{"spec":{"deleteBackup":true}}`)
	victim.awaitGone(nab)
	assert.NotNil(t, veleroBackup(t, name), "nor deleted")
	assert.Empty(t, deleteRequests(t, name))
	x.remove(location)
}
