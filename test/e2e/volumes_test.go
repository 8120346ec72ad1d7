package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmware-tanzu/velero/pkg/apis/velero/shared"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// Volumes are counted where there are any, as they move, and their lists are asked for only there. No volume can be copied
// here, so the test writes what Velero would.
func TestVolumesAreCountedWhereThereAreAny(t *testing.T) {
	actForVelero(t)
	x := newTenant(t, "frank")
	without := x.created("without")
	with := x.await(x.backUp("with", withSpec(func(spec *velerov1.BackupSpec) { spec.SnapshotMoveData = ptr.To(true) })), "Created",
		func(now *oadpv1alpha1.NonAdminBackup) bool {
			return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
		})
	for _, nab := range []*oadpv1alpha1.NonAdminBackup{without, with} {
		veleroSays(t, nab, velerov1.BackupPhaseInProgress)
	}
	volume := &velerov1.PodVolumeBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: env.OADPNamespace, Name: x.namespace + "-volume",
			Labels: map[string]string{velerov1.BackupNameLabel: with.Status.VeleroBackup.Name},
		},
		Spec: velerov1.PodVolumeBackupSpec{UploaderType: "kopia", Volume: "data"},
	}
	require.NoError(t, admin.Create(t.Context(), volume))
	counts := func(action string, want oadpv1alpha1.FileSystemPodVolumeBackups) {
		x.await(with, action, func(now *oadpv1alpha1.NonAdminBackup) bool {
			return now.Status.FileSystemPodVolumeBackups != nil && *now.Status.FileSystemPodVolumeBackups == want
		})
	}
	counts("a new volume", oadpv1alpha1.FileSystemPodVolumeBackups{Total: 1, New: 1})
	before := volume.DeepCopy()
	volume.Status.Phase = velerov1.PodVolumeBackupPhaseCompleted
	volume.Status.Progress = shared.DataMoveOperationProgress{BytesDone: 3 << 30, TotalBytes: 3 << 30}
	require.NoError(t, admin.Patch(t.Context(), volume, client.MergeFrom(before)))
	counts("a volume that is done", oadpv1alpha1.FileSystemPodVolumeBackups{Total: 1, Completed: 1})
	copied := x.awaitCondition(with, oadpv1alpha1.NonAdminConditionVolumesCopied, oadpv1alpha1.ReasonCopied)
	assert.Equal(t, "1 of 1 volumes, 3.0 GiB of 3.0 GiB", copied.Message)

	for _, nab := range []*oadpv1alpha1.NonAdminBackup{without, with} {
		veleroSays(t, nab, velerov1.BackupPhaseCompleted)
		done := x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
		assert.Equal(t, nab == with, done.Status.FileSystemPodVolumeBackups != nil)
		awaitEnd(t, nab)
	}
}

// As for a backup, of what a restore brings back.
func TestRestoredVolumesAreCountedWhereThereAreAny(t *testing.T) {
	x := newTenant(t, "frank")
	nab := x.completed("nightly")
	actForVelero(t)
	nar := x.awaitRestoreCreated(x.restore("with-volumes", nab.Name))
	veleroSaysOf(t, nar, velerov1.RestorePhaseInProgress)
	made := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: env.OADPNamespace, Name: x.namespace + "-" + name,
			Labels: map[string]string{velerov1.RestoreNameLabel: restoreID(nar)},
		}
	}
	volume := &velerov1.PodVolumeRestore{
		ObjectMeta: made("volume"), Spec: velerov1.PodVolumeRestoreSpec{UploaderType: "kopia", Volume: "data"},
	}
	require.NoError(t, admin.Create(t.Context(), volume))
	require.NoError(t, admin.Create(t.Context(), &velerov2alpha1.DataDownload{ObjectMeta: made("download")}))
	counts := func(action string, want oadpv1alpha1.FileSystemPodVolumeRestores) {
		x.awaitRestore(nar, action, func(now *restoring) bool {
			return now.Status.FileSystemPodVolumeRestores != nil && *now.Status.FileSystemPodVolumeRestores == want &&
				now.Status.DataMoverDataDownloads != nil && now.Status.DataMoverDataDownloads.New == 1
		})
	}
	counts("new volumes", oadpv1alpha1.FileSystemPodVolumeRestores{Total: 1, New: 1})
	before := volume.DeepCopy()
	volume.Status.Phase = velerov1.PodVolumeRestorePhaseCompleted
	require.NoError(t, admin.Patch(t.Context(), volume, client.MergeFrom(before)))
	veleroSaysOf(t, nar, velerov1.RestorePhaseCompleted)
	counts("a volume that is done", oadpv1alpha1.FileSystemPodVolumeRestores{Total: 1, Completed: 1})
	recordRestore(t, nar)
}
