package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func volumeOf(backup, version string) *metav1.PartialObjectMetadata {
	volume := podVolumeBackups.Object.DeepCopyObject().(*metav1.PartialObjectMetadata)
	volume.SetNamespace(fake.OADPNamespace)
	volume.SetName("volume")
	volume.SetResourceVersion(version)
	if backup != "" {
		volume.SetLabels(map[string]string{velerov1.BackupNameLabel: backup})
	}
	return volume
}

// A signal says that the backup has volumes, and the volume's progress is a reason to signal.
func TestVolumesOfABackupAreNoticed(t *testing.T) {
	nab, velero := tracked(name, "InProgress")
	s, q := newStation(t, nab, velero), &recordingQueue{}
	_, err := s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.False(t, s.signals.Volumes)

	s.backups.volumeEvents().Create(t.Context(), event.CreateEvent{Object: volumeOf(velero.Name, "1")}, q)
	later := []added{{Request: request(name), After: s.env.ProgressInterval}}
	assert.Equal(t, later, q.Added)
	_, err = s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.True(t, s.signals.Volumes)

	q.Added = nil
	s.backups.volumeEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: volumeOf(velero.Name, "1"), ObjectNew: volumeOf(velero.Name, "1")}, q)
	assert.Empty(t, q.Added, "a resync of the cache")
	s.backups.volumeEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: volumeOf(velero.Name, "1"), ObjectNew: volumeOf(velero.Name, "2")}, q)
	assert.Equal(t, later, q.Added)

	s.backups.veleroEvents().Delete(t.Context(), event.DeleteEvent{Object: velero}, q)
	has, _ := s.backups.Volumes.Take(velero.Name)
	assert.False(t, has, "not remembered for ever")
}

// The watcher may have been away while Velero copied volumes, and the workflow's own re-read have ended it. Once is enough:
// where the workflow finds none to count, no resync asks it again.
func TestVolumesThatComeToLightAfterTheEndAreCounted(t *testing.T) {
	begun := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	tests := map[string]struct {
		change func(*oadpv1alpha1.NonAdminBackup, *velerov1.Backup)
		want   []string
	}{
		"not counted": {change: func(*oadpv1alpha1.NonAdminBackup, *velerov1.Backup) {}, want: []string{start}},
		"volumes counted": {change: func(nab *oadpv1alpha1.NonAdminBackup, _ *velerov1.Backup) {
			nab.Status.FileSystemPodVolumeBackups = &oadpv1alpha1.FileSystemPodVolumeBackups{Total: 1, Completed: 1}
		}},
		"uploads counted": {change: func(nab *oadpv1alpha1.NonAdminBackup, _ *velerov1.Backup) {
			nab.Status.DataMoverDataUploads = &oadpv1alpha1.DataMoverDataUploads{Total: 1, Completed: 1}
		}},
		"never begun by Velero": {change: func(_ *oadpv1alpha1.NonAdminBackup, velero *velerov1.Backup) {
			velero.Status.StartTimestamp = nil
		}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab, velero := tracked(name, "Completed")
			velero.Status.StartTimestamp = &begun
			test.change(nab, velero)
			s, q := newStation(t, nab, velero), &recordingQueue{}
			s.backups.volumeEvents().Create(t.Context(), event.CreateEvent{Object: volumeOf(velero.Name, "1")}, q)
			require.Len(t, q.Added, 1)
			for range 3 {
				_, err := s.backups.Reconcile(t.Context(), request(name))
				require.NoError(t, err)
			}
			assert.Equal(t, test.want, s.signals.Sent)
			assert.Equal(t, test.want != nil, s.signals.Volumes)
		})
	}

	t.Run("Temporal is away", func(t *testing.T) {
		nab, velero := tracked(name, "Completed")
		velero.Status.StartTimestamp = &begun
		s := newStation(t, nab, velero)
		s.backups.volumeEvents().Create(t.Context(), event.CreateEvent{Object: volumeOf(velero.Name, "1")}, &recordingQueue{})
		s.signals.Err = errAway
		_, err := s.backups.Reconcile(t.Context(), request(name))
		require.ErrorIs(t, err, errAway)
		s.signals.Err = nil
		_, err = s.backups.Reconcile(t.Context(), request(name))
		require.NoError(t, err)
		assert.Equal(t, []string{start}, s.signals.Sent)
		assert.True(t, s.signals.Volumes)
	})
}

func TestVolumesOfOthersWakeNobody(t *testing.T) {
	nab, velero := tracked(name, "InProgress")
	delete(velero.Annotations, "openshift.io/oadp-nab-origin-namespace")
	s, q := newStation(t, nab, velero), &recordingQueue{}
	for _, backup := range []string{"", "unknown", velero.Name} {
		s.backups.volumeEvents().Create(t.Context(), event.CreateEvent{Object: volumeOf(backup, "1")}, q)
	}
	assert.Empty(t, q.Added)
	has, _ := s.backups.Volumes.Take("")
	assert.False(t, has)
}
