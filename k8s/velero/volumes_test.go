package velero_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmware-tanzu/velero/pkg/apis/velero/shared"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
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
	counts := func(object client.Object) string { // without the condition
		switch object := object.DeepCopyObject().(type) {
		case *oadpv1alpha1.NonAdminBackup:
			object.Status.Conditions = nil
			return textOf(object.Status)
		case *oadpv1alpha1.NonAdminRestore:
			object.Status.Conditions = nil
			return textOf(object.Status)
		}
		return ""
	}
	nab, nar := &oadpv1alpha1.NonAdminBackup{}, &oadpv1alpha1.NonAdminRestore{}
	velero.ApplyVolumes(nab, velero.Volumes{})
	assert.JSONEq(t, `{}`, textOf(nab.Status), "none at all says nothing")
	assert.False(t, velero.VolumesDone(nab))
	for range 2 {
		velero.ApplyVolumes(nab, volumes)
		velero.ApplyVolumes(nar, volumes)
		assert.JSONEq(t, `{"dataMoverDataUploads":`+moved+`,"fileSystemPodVolumeBackups":`+copied+`}`, counts(nab))
		assert.JSONEq(t, `{"dataMoverDataDownloads":`+moved+`,"fileSystemPodVolumeRestores":`+copied+`}`, counts(nar))
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

func TestHowMuchIsCopiedIsACondition(t *testing.T) {
	bytes := shared.DataMoveOperationProgress{BytesDone: 3 << 29, TotalBytes: 4 << 30}
	for title, test := range map[string]struct {
		volumes velero.Volumes
		want    []string
	}{
		"none":               {velero.Volumes{}, nil},
		"nothing known yet":  {velero.Volumes{Copied: []string{"", "New"}}, []string{"False", "Copying", "0 of 2 volumes"}},
		"one of two":         {velero.Volumes{Moved: []string{"InProgress"}, Copied: []string{"Completed"}, Bytes: bytes}, []string{"False", "Copying", "1 of 2 volumes, 1.5 GiB of 4.0 GiB"}},
		"all":                {velero.Volumes{Moved: []string{"Completed"}, Copied: []string{"Completed"}}, []string{"True", "Copied", "2 of 2 volumes"}},
		"all ended, one not": {velero.Volumes{Moved: []string{"Canceled"}, Copied: []string{"Completed"}}, []string{"False", "CopyFailed", "1 of 2 volumes"}},
	} {
		for _, object := range []client.Object{&oadpv1alpha1.NonAdminBackup{}, &oadpv1alpha1.NonAdminRestore{}} {
			object.SetGeneration(3)
			velero.ApplyVolumes(object, test.volumes)
			var got []string
			for _, c := range k8s.Conditions(object) {
				got = append(got, string(c.Status), c.Reason, c.Message)
				assert.Equal(t, "VolumesCopied", c.Type, title)
				assert.EqualValues(t, 3, c.ObservedGeneration, title)
			}
			assert.Equal(t, test.want, got, title)
		}
	}
}
