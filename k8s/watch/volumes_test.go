package watch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/test/fake"
)

func volumeOf(backup, version string) *metav1.PartialObjectMetadata {
	volume := metadataOf(velerov1.SchemeGroupVersion.WithKind("PodVolumeBackup"))
	volume.SetNamespace(fake.OADPNamespace)
	volume.SetName("volume")
	volume.SetResourceVersion(version)
	if backup != "" {
		volume.SetLabels(map[string]string{velerov1.BackupNameLabel: backup})
	}
	return volume
}

// Whoever is signalled learns that its backup has volumes, and the volume's progress is a reason to signal.
func TestVolumesOfABackupAreNoticed(t *testing.T) {
	nab, velero := tracked(name, "InProgress")
	s, q := newStation(t, nab, velero), &recordingQueue{}
	_, err := s.look(t.Context(), request(name))
	require.NoError(t, err)
	assert.False(t, s.signals.volumes)

	s.volumeEvents().Create(t.Context(), event.CreateEvent{Object: volumeOf(velero.Name, "1")}, q)
	later := []added{{Request: request(name), after: s.ProgressInterval}}
	assert.Equal(t, later, q.added)
	_, err = s.look(t.Context(), request(name))
	require.NoError(t, err)
	assert.True(t, s.signals.volumes)

	q.added = nil
	s.volumeEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: volumeOf(velero.Name, "1"), ObjectNew: volumeOf(velero.Name, "1")}, q)
	assert.Empty(t, q.added, "a resync of the cache")
	s.volumeEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: volumeOf(velero.Name, "1"), ObjectNew: volumeOf(velero.Name, "2")}, q)
	assert.Equal(t, later, q.added)

	s.veleroBackupEvents().Delete(t.Context(), event.DeleteEvent{Object: velero}, q)
	assert.False(t, s.volumes.has(velero.Name), "not remembered for ever")
}

func TestVolumesOfOthersWakeNobody(t *testing.T) {
	nab, velero := tracked(name, "InProgress")
	delete(velero.Annotations, "openshift.io/oadp-nab-origin-namespace")
	s, q := newStation(t, nab, velero), &recordingQueue{}
	for _, backup := range []string{"", "unknown", velero.Name} {
		s.volumeEvents().Create(t.Context(), event.CreateEvent{Object: volumeOf(backup, "1")}, q)
	}
	assert.Empty(t, q.added)
	assert.False(t, s.volumes.has(""))
}
