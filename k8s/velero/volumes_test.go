package velero_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
)

func TestVolumesAreCountedByPhase(t *testing.T) {
	volumes := velero.Volumes{
		Moved: []string{
			"", "New", "Accepted", "Prepared", "InProgress", "InProgress", "Canceling", "Canceled", "Failed", "Completed", "Newer",
		},
		Copied: []string{"", "New", "Accepted", "InProgress", "Canceled", "Failed", "Completed", "Completed", "Newer"},
	}
	const moved = `{"total":11,"new":2,"accepted":1,"prepared":1,"inProgress":2,"canceling":1,"canceled":1,"failed":1,"completed":1}`
	const copied = `{"total":9,"new":2,"inProgress":1,"failed":2,"completed":2}`
	textOf := func(status any) string {
		text, err := json.Marshal(status)
		require.NoError(t, err)
		return string(text)
	}
	nab, nar := &oadpv1alpha1.NonAdminBackup{}, &oadpv1alpha1.NonAdminRestore{}
	velero.ApplyVolumes(nab, velero.Volumes{})
	assert.JSONEq(t, `{}`, textOf(nab.Status), "none at all says nothing")
	assert.False(t, velero.VolumesDone(nab))
	for range 2 {
		velero.ApplyVolumes(nab, volumes)
		velero.ApplyVolumes(nar, volumes)
		assert.JSONEq(t, `{"dataMoverDataUploads":`+moved+`,"fileSystemPodVolumeBackups":`+copied+`}`, textOf(nab.Status))
		assert.JSONEq(t, `{"dataMoverDataDownloads":`+moved+`,"fileSystemPodVolumeRestores":`+copied+`}`, textOf(nar.Status))
		assert.False(t, velero.VolumesDone(nab))
		assert.False(t, velero.VolumesDone(nar))
		volumes = velero.Volumes{} // Velero removes those objects before the backup: the counts stay
	}
	done := velero.Volumes{Moved: []string{"Canceled", "Failed", "Completed"}, Copied: []string{"Canceled", "Failed", "Completed"}}
	velero.ApplyVolumes(nab, done)
	velero.ApplyVolumes(nar, done)
	assert.True(t, velero.VolumesDone(nab))
	assert.True(t, velero.VolumesDone(nar))
}
