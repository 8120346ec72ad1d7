package backup

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func countUploads(uploads []velerov2alpha1.DataUpload) *oadpv1alpha1.DataMoverDataUploads {
	counts := &oadpv1alpha1.DataMoverDataUploads{Total: len(uploads)}
	for i := range uploads {
		switch uploads[i].Status.Phase {
		case velerov2alpha1.DataUploadPhaseNew, "":
			counts.New++
		case velerov2alpha1.DataUploadPhaseAccepted:
			counts.Accepted++
		case velerov2alpha1.DataUploadPhasePrepared:
			counts.Prepared++
		case velerov2alpha1.DataUploadPhaseInProgress:
			counts.InProgress++
		case velerov2alpha1.DataUploadPhaseCanceling:
			counts.Canceling++
		case velerov2alpha1.DataUploadPhaseCanceled:
			counts.Canceled++
		case velerov2alpha1.DataUploadPhaseFailed:
			counts.Failed++
		case velerov2alpha1.DataUploadPhaseCompleted:
			counts.Completed++
		}
	}
	return counts
}

// countPodVolumes counts by the phases that the status has fields for: OADP's CRD has none for Accepted, Prepared and Canceling,
// which appear in the total only, and Canceled counts as Failed.
func countPodVolumes(volumes []velerov1.PodVolumeBackup) *oadpv1alpha1.FileSystemPodVolumeBackups {
	counts := &oadpv1alpha1.FileSystemPodVolumeBackups{Total: len(volumes)}
	for i := range volumes {
		switch volumes[i].Status.Phase {
		case velerov1.PodVolumeBackupPhaseNew, "":
			counts.New++
		case velerov1.PodVolumeBackupPhaseInProgress:
			counts.InProgress++
		case velerov1.PodVolumeBackupPhaseFailed, velerov1.PodVolumeBackupPhaseCanceled:
			counts.Failed++
		case velerov1.PodVolumeBackupPhaseCompleted:
			counts.Completed++
		}
	}
	return counts
}

// VolumesDone reports whether volumes were counted and all of them are finished.
func VolumesDone(status *oadpv1alpha1.NonAdminBackupStatus) bool {
	uploads, volumes := status.DataMoverDataUploads, status.FileSystemPodVolumeBackups
	if uploads == nil && volumes == nil {
		return false
	}
	return (uploads == nil || uploads.Total == uploads.Completed+uploads.Failed+uploads.Canceled) &&
		(volumes == nil || volumes.Total == volumes.Completed+volumes.Failed)
}
