package buckets_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/buckets"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

var name, place = fake.VeleroName(activitytest.Name), fake.LocationName("own")

// world is one with a tenant's location, whose bucket is a folder.
func world(t *testing.T, objects ...client.Object) *fake.World {
	t.Helper()
	own := fake.NaBSL("own")
	own.Spec.BackupStorageLocationSpec.BackupSyncPeriod = &metav1.Duration{Duration: 1} // always due
	location := activitytest.Listed()
	location.ObjectMeta = owner.Location.Meta(own, place, fake.OADPNamespace, place)
	location.Status.LastSyncedTime = nil
	w := fake.New(t, append(objects, own, location, activitytest.Listed(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}})...)
	w.Bucket = t.TempDir()
	return w
}

// stored is the Backup that a tenant's bucket holds.
func stored() *velerov1.Backup {
	made := activitytest.SyncedBackup(activitytest.Name)
	made.TypeMeta = metav1.TypeMeta{APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup"}
	made.Spec.IncludedNamespaces = []string{fake.Namespace}
	made.Status.Phase = velerov1.BackupPhaseCompleted
	made.Status.CompletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	return made
}

func write(t *testing.T, w *fake.World, file string, content any) {
	t.Helper()
	encoded, err := json.Marshal(content)
	require.NoError(t, err)
	if filepath.Ext(file) == ".gz" {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		_, err := writer.Write(encoded)
		require.NoError(t, err)
		require.NoError(t, writer.Close())
		encoded = packed.Bytes()
	}
	path := filepath.Join(w.Bucket, "backups", name, file)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, encoded, 0o600))
}

func podVolumeBackups(t *testing.T, w *fake.World) []velerov1.PodVolumeBackup {
	t.Helper()
	var list velerov1.PodVolumeBackupList
	require.NoError(t, w.Client.List(t.Context(), &list))
	return list.Items
}

// copied is a PodVolumeBackup of the Backup, of a Pod in a namespace.
func copied(called, namespace string, phase velerov1.PodVolumeBackupPhase) velerov1.PodVolumeBackup {
	return velerov1.PodVolumeBackup{
		ObjectMeta: metav1.ObjectMeta{
			Name: called, Namespace: "velero", Finalizers: []string{"evil"},
			Labels: map[string]string{velerov1.BackupNameLabel: "another", "evil": "label"},
		},
		Spec: velerov1.PodVolumeBackupSpec{
			Pod: corev1.ObjectReference{Namespace: namespace, Name: "db"}, Volume: "data", BackupStorageLocation: "default",
		},
		Status: velerov1.PodVolumeBackupStatus{Phase: phase, SnapshotID: "s"},
	}
}

func TestABackupInATenantsBucketComesWithItsVolumes(t *testing.T) {
	w := world(t)
	made := stored()
	made.Finalizers, made.Labels["evil"], made.Annotations["evil"] = []string{"evil"}, "label", "annotation"
	made.Labels[velerov1.ScheduleNameLabel] = "an administrator restores the newest of"
	made.Annotations["velero.io/source-cluster-k8s-gitversion"] = "v1.34.0"
	made.Spec.Hooks.Resources = []velerov1.BackupResourceHookSpec{{Name: "evil"}}
	write(t, w, "velero-backup.json", made)
	const done = velerov1.PodVolumeBackupPhaseCompleted
	write(t, w, name+"-podvolumebackups.json.gz", []velerov1.PodVolumeBackup{
		copied(name+"-aaaaa", fake.Namespace, done), copied(name+"-bbbbb", "bank", done), copied("elsewhere", fake.Namespace, done),
		copied(name+"-ccccc", fake.Namespace, velerov1.PodVolumeBackupPhaseNew),
	})

	first := activitytest.SynchronizeNow(t, w)
	assert.Equal(t, 1, first.Brought)
	assert.Equal(t, 1, first.Made, "its NonAdminBackup, at once")
	got := w.Velero(name)
	require.NotNil(t, got)
	assert.Equal(t, place, got.Spec.StorageLocation)
	assert.Equal(t, place, got.Labels[velerov1.StorageLocationLabel])
	assert.Empty(t, got.Spec.Hooks)
	assert.Empty(t, got.Finalizers)
	assert.NotContains(t, got.Labels, "evil")
	assert.NotContains(t, got.Labels, velerov1.ScheduleNameLabel)
	assert.NotContains(t, got.Annotations, "evil")
	assert.Equal(t, "v1.34.0", got.Annotations["velero.io/source-cluster-k8s-gitversion"])
	assert.False(t, buckets.Pending(got))
	volumes := podVolumeBackups(t, w)
	require.Len(t, volumes, 1, "of the tenant's Pods, and none that a node agent would carry out")
	assert.Equal(t, name, volumes[0].Labels[velerov1.BackupNameLabel], "another backup's volumes are not its to name")
	assert.Equal(t, place, volumes[0].Spec.BackupStorageLocation)
	assert.Equal(t, got.UID, volumes[0].OwnerReferences[0].UID)
	assert.Empty(t, volumes[0].Finalizers)
	assert.NotNil(t, w.VeleroLocation("own").Status.LastSyncedTime)

	writes := activitytest.WritesOf(w, func() { assert.Zero(t, activitytest.SynchronizeNow(t, w)) })
	assert.Len(t, writes, 1, "only when it was read: %v", writes)
	require.NoError(t, os.RemoveAll(filepath.Join(w.Bucket, "backups", name)))
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Removed)
	assert.Nil(t, w.Velero(name))
}

func TestWhatATenantsBucketDoesNotBring(t *testing.T) {
	for sentence, change := range map[string]func(*velerov1.Backup){
		"another's":          func(b *velerov1.Backup) { b.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = "bank" },
		"nobody's":           func(b *velerov1.Backup) { b.Annotations = nil },
		"under another name": func(b *velerov1.Backup) { b.Name = activitytest.Victims },
		"one to be made":     func(b *velerov1.Backup) { b.Status.Phase = velerov1.BackupPhaseNew },
		"one under way":      func(b *velerov1.Backup) { b.Status.Phase = velerov1.BackupPhaseFinalizing },
		"no Backup":          func(b *velerov1.Backup) { b.Kind = "Restore" },
		"newer than any":     func(b *velerov1.Backup) { b.Status.StartTimestamp = &metav1.Time{Time: time.Now().Add(24 * time.Hour)} },
	} {
		t.Run(sentence, func(t *testing.T) {
			w, made := world(t), stored()
			change(made)
			write(t, w, "velero-backup.json", made)
			assert.Zero(t, activitytest.SynchronizeNow(t, w).Brought)
			assert.Nil(t, w.Velero(name))
		})
	}
}

// Velero knows no backup whose files it could not read: neither one that a tenant puts there, nor one that was good once.
func TestVeleroNeverSeesWhatIsTooLarge(t *testing.T) {
	w := world(t)
	write(t, w, "velero-backup.json", stored())
	large := filepath.Join(w.Bucket, "backups", name, "velero-backup.json")
	require.NoError(t, os.Truncate(large, 3<<30))
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Withheld)
	assert.Nil(t, w.Velero(name))
	assert.Contains(t, <-w.Events, "BackupWithheld")

	write(t, w, "velero-backup.json", stored())
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Brought, "it was mended")
	bomb := make([]map[string]any, 200_001)
	write(t, w, name+"-volumesnapshots.json.gz", bomb)
	assert.Zero(t, activitytest.SynchronizeNow(t, w).Withheld, "null is nothing")
	for i := range bomb {
		bomb[i] = map[string]any{}
	}
	write(t, w, name+"-volumesnapshots.json.gz", bomb)
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Withheld)
	assert.Nil(t, w.Velero(name), "Velero would read it when the backup expires")
}

// The process dies between the Backup and its volumes: a restore in between would come without them.
func TestABackupIsOfferedWithAllItsVolumes(t *testing.T) {
	w := world(t)
	write(t, w, "velero-backup.json", stored())
	write(t, w, name+"-podvolumebackups.json.gz", []velerov1.PodVolumeBackup{
		copied(name+"-aaaaa", fake.Namespace, velerov1.PodVolumeBackupPhaseCompleted),
	})
	w.Fail(func(_ string, object client.Object) error {
		if _, is := object.(*velerov1.PodVolumeBackup); is {
			return fake.ErrAway
		}
		return nil
	})
	_, err := activitytest.Periodic[contract.SynchronizationResult](t, w, contract.SynchronizeBackups.Name, contract.ScheduledInput{})
	require.Error(t, err)
	require.True(t, buckets.Pending(w.Velero(name)))
	assert.Nil(t, w.Read(activitytest.Name))

	w.Fail(nil)
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Made)
	assert.Len(t, podVolumeBackups(t, w), 1)
}

// Whether Velero reads tenants' buckets is the administrator's to say; where it does, Holdfast does not.
func TestOnlyOneSynchronizes(t *testing.T) {
	w := world(t)
	write(t, w, "velero-backup.json", stored())
	w.Policy.TenantsBuckets.VeleroSynchronizes = true
	assert.Zero(t, activitytest.SynchronizeNow(t, w))
	assert.Nil(t, w.VeleroLocation("own").Spec.BackupSyncPeriod)

	w.Policy.TenantsBuckets.VeleroSynchronizes = false
	w.Bucket = ""
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Unread)
	assert.Equal(t, &metav1.Duration{}, w.VeleroLocation("own").Spec.BackupSyncPeriod, "at once, whether it can be read or not")
	assert.Contains(t, <-w.Events, "BucketNotSynchronized")
}

// A tenant may replace a file and request a restore, or the deletion, at once: Velero would read it before the next
// synchronization.
func TestFilesAreReadBeforeVeleroReadsThem(t *testing.T) {
	w := world(t)
	write(t, w, "velero-backup.json", stored())
	require.Equal(t, 1, activitytest.SynchronizeNow(t, w).Made)
	made := w.Velero(name)
	admit := func() error {
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		step := func(ctx context.Context) error { return w.Buckets.Admit(ctx, made) }
		env.RegisterActivity(step)
		_, err := env.ExecuteActivity(step)
		return err
	}
	require.NoError(t, admit())

	before := made.Annotations[buckets.FilesAnnotation]
	write(t, w, name+"-volumeinfo.json.gz", []string{})
	require.NoError(t, admit())
	assert.NotEqual(t, before, w.Velero(name).Annotations[buckets.FilesAnnotation], "it was read, and need not be again")

	write(t, w, name+"-volumeinfo.json.gz", make([]int, 9<<20))
	require.ErrorContains(t, admit(), "it is larger than a list may be")
	assert.Nil(t, w.Velero(name), "the next attempt finds that there is none")

	w.Bucket = ""
	require.NoError(t, admit(), "one that only Velero can open")
	made.Spec.StorageLocation = "default"
	require.NoError(t, admit(), "an administrator's bucket")
}

func TestNoDeletionIsRequestedOfWhatVeleroCouldNotRead(t *testing.T) {
	w := world(t)
	write(t, w, "velero-backup.json", stored())
	require.Equal(t, 1, activitytest.SynchronizeNow(t, w).Made)
	nab := w.Read(activitytest.Name)
	nab.Spec.DeleteBackup = true
	require.NoError(t, w.Client.Update(t.Context(), nab))
	write(t, w, name+".tar.gz", make([]int, 9<<20)) // no archive, and nothing to Velero
	write(t, w, name+"-results.gz", make([]int, 9<<20))
	step := contract.BackupStep{Ref: fake.Ref(activitytest.Name), Attempt: 1}
	_, err := activitytest.Run(t, w, contract.RequestDeletion.Name, step)
	require.ErrorContains(t, err, name+"-results.gz")
	var requests velerov1.DeleteBackupRequestList
	require.NoError(t, w.Client.List(t.Context(), &requests))
	assert.Empty(t, requests.Items)

	view, err := activitytest.Run(t, w, contract.RequestDeletion.Name, step)
	require.NoError(t, err)
	assert.False(t, view.Velero.Exists, "there is nothing to delete any more")
}

// A store may be the tenant's own program, and the clouds' drivers do not bear every answer.
func TestAStoreThatBreaksADriverEndsNoWorker(t *testing.T) {
	w := world(t)
	w.Buckets.OpenLocation = func(context.Context, *velerov1.BackupStorageLocation) (*objectstore.Store, error) {
		panic("an entry without a time")
	}
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Unread)
	assert.Contains(t, <-w.Events, "BucketNotSynchronized")
	assert.Zero(t, activitytest.SynchronizeNow(t, w), "nor is it tried again at once")
}

// A location that brings no backups back still has those of this cluster.
func TestALocationThatIsNotSynchronizedIsInspected(t *testing.T) {
	w := world(t)
	write(t, w, "velero-backup.json", stored())
	require.Equal(t, 1, activitytest.SynchronizeNow(t, w).Brought)
	w.EditLocation("own", func(spec *velerov1.BackupStorageLocationSpec) { spec.BackupSyncPeriod = &metav1.Duration{} })
	write(t, w, name+"-results.gz", make([]int, 9<<20))
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Withheld)
	assert.Nil(t, w.Velero(name))
	write(t, w, name+"-results.gz", []int{})
	assert.Zero(t, activitytest.SynchronizeNow(t, w))
	assert.Nil(t, w.Velero(name))
}

// An administrator raises the limit: what is remembered is not about that.
func TestAHigherLimitBringsABackupBack(t *testing.T) {
	w := world(t)
	write(t, w, "velero-backup.json", stored())
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	files := tar.NewWriter(packed)
	require.NoError(t, files.WriteHeader(&tar.Header{Name: "resources/a.json", Mode: 0o600, Size: 2048}))
	_, err := files.Write(make([]byte, 2048))
	require.NoError(t, errors.Join(err, files.Close(), packed.Close()))
	require.NoError(t, os.WriteFile(filepath.Join(w.Bucket, "backups", name, name+".tar.gz"), archive.Bytes(), 0o600))
	w.Policy.TenantsBuckets.MaxArchiveSize = ptr.To(resource.MustParse("1Ki"))
	for range 2 {
		assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Withheld)
	}
	w.Policy.TenantsBuckets.MaxArchiveSize = nil
	assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Brought)
}
