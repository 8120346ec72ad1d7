package velero

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/vmware-tanzu/velero/pkg/apis/velero/shared"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Volumes are the phases of the objects by which Velero copies the volumes of a Backup or Restore: Moved those of its
// DataUploads or DataDownloads, Copied those of its PodVolumeBackups or PodVolumeRestores. All four kinds have the same phases.
type Volumes struct {
	Moved, Copied []string
	// Bytes are those of all of them.
	Bytes shared.DataMoveOperationProgress
}

// ReadVolumes lists Velero's volume objects for a Backup or Restore.
func ReadVolumes(ctx context.Context, reader client.Reader, made client.Object) (found Volumes, err error) {
	list := func(kind string, into client.ObjectList) (phases []string) {
		label := velerov1.BackupNameLabel
		if _, is := made.(*velerov1.Restore); is {
			label = velerov1.RestoreNameLabel
		}
		if err == nil {
			err = reader.List(ctx, into, client.InNamespace(made.GetNamespace()), client.MatchingLabels{label: made.GetName()})
		}
		if err != nil {
			err = fmt.Errorf("list %s of %s: %w", kind, made.GetName(), err)
			return nil
		}
		err = meta.EachListItem(into, func(object runtime.Object) error {
			phase, bytes := volumeStatus(object)
			phases = append(phases, phase)
			found.Bytes.BytesDone += bytes.BytesDone
			found.Bytes.TotalBytes += bytes.TotalBytes
			return nil
		})
		return phases
	}
	switch made := made.(type) {
	case *velerov1.Backup:
		found.Copied = list("PodVolumeBackups", &velerov1.PodVolumeBackupList{})
		if moves := made.Spec.SnapshotMoveData; err == nil && moves != nil && *moves {
			found.Moved = list("DataUploads", &velerov2alpha1.DataUploadList{})
		}
	case *velerov1.Restore:
		found.Copied = list("PodVolumeRestores", &velerov1.PodVolumeRestoreList{})
		if err == nil {
			found.Moved = list("DataDownloads", &velerov2alpha1.DataDownloadList{})
		}
	}
	return found, err
}

func volumeStatus(object runtime.Object) (phase string, bytes shared.DataMoveOperationProgress) {
	switch volume := object.(type) {
	case *velerov1.PodVolumeBackup:
		return string(volume.Status.Phase), volume.Status.Progress
	case *velerov1.PodVolumeRestore:
		return string(volume.Status.Phase), volume.Status.Progress
	case *velerov2alpha1.DataUpload:
		return string(volume.Status.Phase), volume.Status.Progress
	case *velerov2alpha1.DataDownload:
		return string(volume.Status.Phase), volume.Status.Progress
	}
	return "", bytes
}

// ApplyVolumes counts volumes by phase in the status of a NonAdminBackup or NonAdminRestore, and their bytes in a condition. If
// there are none, the status stays as it is: Velero removes those objects long before the backup or restore.
func ApplyVolumes(object client.Object, volumes Volumes) {
	moved, copied := volumesOf(object)
	if len(volumes.Moved) > 0 {
		moved = countMoved(volumes.Moved)
	}
	if len(volumes.Copied) > 0 {
		copied = countCopied(volumes.Copied)
	}
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		object.Status.DataMoverDataUploads, object.Status.FileSystemPodVolumeBackups = moved, copied
		applyCopied(&object.Status.Conditions, object.Generation, volumes)
	case *oadpv1alpha1.NonAdminRestore:
		object.Status.DataMoverDataDownloads = (*oadpv1alpha1.DataMoverDataDownloads)(moved)
		object.Status.FileSystemPodVolumeRestores = (*oadpv1alpha1.FileSystemPodVolumeRestores)(copied)
		applyCopied(&object.Status.Conditions, object.Generation, volumes)
	}
}

// applyCopied shows in a condition what the status has no fields for: where OADP's CRDs are installed, the API server would drop
// them.
func applyCopied(conditions *[]metav1.Condition, generation int64, volumes Volumes) {
	total := len(volumes.Moved) + len(volumes.Copied)
	if total == 0 {
		return
	}
	moved, copied := countMoved(volumes.Moved), countCopied(volumes.Copied)
	done := moved.Completed + copied.Completed
	status, reason := metav1.ConditionFalse, oadpv1alpha1.ReasonCopying
	switch {
	case done == total:
		status, reason = metav1.ConditionTrue, oadpv1alpha1.ReasonCopied
	case done+moved.Failed+moved.Canceled+copied.Failed == total:
		reason = oadpv1alpha1.ReasonCopyFailed
	}
	message := fmt.Sprintf("%d of %d volumes", done, total)
	if bytes := volumes.Bytes; bytes.TotalBytes > 0 {
		done := humanize.IBytes(uint64(max(bytes.BytesDone, 0)))
		message += fmt.Sprintf(", %s of %s", done, humanize.IBytes(uint64(bytes.TotalBytes)))
	}
	k8s.SetCondition(conditions, generation, oadpv1alpha1.NonAdminConditionVolumesCopied, status, reason, message)
}

// VolumesDone reports whether the status of a NonAdminBackup or NonAdminRestore counts volumes, and all of them are finished.
func VolumesDone(object client.Object) bool {
	moved, copied := volumesOf(object)
	if moved == nil && copied == nil {
		return false
	}
	return (moved == nil || moved.Total == moved.Completed+moved.Failed+moved.Canceled) &&
		(copied == nil || copied.Total == copied.Completed+copied.Failed)
}

// volumesOf are the counters in a status. Those of a NonAdminRestore have other names for the same fields.
func volumesOf(object client.Object) (*oadpv1alpha1.DataMoverDataUploads, *oadpv1alpha1.FileSystemPodVolumeBackups) {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		return object.Status.DataMoverDataUploads, object.Status.FileSystemPodVolumeBackups
	case *oadpv1alpha1.NonAdminRestore:
		return (*oadpv1alpha1.DataMoverDataUploads)(object.Status.DataMoverDataDownloads),
			(*oadpv1alpha1.FileSystemPodVolumeBackups)(object.Status.FileSystemPodVolumeRestores)
	}
	return nil, nil
}

func countMoved(phases []string) *oadpv1alpha1.DataMoverDataUploads {
	in := tally(phases)
	return &oadpv1alpha1.DataMoverDataUploads{
		Total: len(phases), New: in["New"] + in[""], Accepted: in["Accepted"], Prepared: in["Prepared"], InProgress: in["InProgress"],
		Canceling: in["Canceling"], Canceled: in["Canceled"], Failed: in["Failed"], Completed: in["Completed"],
	}
}

// countCopied counts by the phases that the status has fields for: OADP's CRD has none for Accepted, Prepared and Canceling,
// which appear in the total only, and Canceled counts as Failed.
func countCopied(phases []string) *oadpv1alpha1.FileSystemPodVolumeBackups {
	in := tally(phases)
	return &oadpv1alpha1.FileSystemPodVolumeBackups{
		Total: len(phases), New: in["New"] + in[""], InProgress: in["InProgress"], Failed: in["Failed"] + in["Canceled"],
		Completed: in["Completed"],
	}
}

func tally(phases []string) map[string]int {
	in := map[string]int{}
	for _, phase := range phases {
		in[phase]++
	}
	return in
}
