package restore

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// ApplyVolumeCounters counts the data-mover downloads and pod volume restores of the Velero Restore by phase. If there are
// none, the fields stay as they are: Velero removes those objects long before the restore.
func ApplyVolumeCounters(
	nar *oadpv1alpha1.NonAdminRestore, downloads []velerov2alpha1.DataDownload, volumes []velerov1.PodVolumeRestore,
) {
	if len(downloads) > 0 {
		nar.Status.DataMoverDataDownloads = countDownloads(downloads)
	}
	if len(volumes) > 0 {
		nar.Status.FileSystemPodVolumeRestores = countPodVolumes(volumes)
	}
}

func countDownloads(downloads []velerov2alpha1.DataDownload) *oadpv1alpha1.DataMoverDataDownloads {
	counts := &oadpv1alpha1.DataMoverDataDownloads{Total: len(downloads)}
	for i := range downloads {
		switch downloads[i].Status.Phase {
		case velerov2alpha1.DataDownloadPhaseNew, "":
			counts.New++
		case velerov2alpha1.DataDownloadPhaseAccepted:
			counts.Accepted++
		case velerov2alpha1.DataDownloadPhasePrepared:
			counts.Prepared++
		case velerov2alpha1.DataDownloadPhaseInProgress:
			counts.InProgress++
		case velerov2alpha1.DataDownloadPhaseCanceling:
			counts.Canceling++
		case velerov2alpha1.DataDownloadPhaseCanceled:
			counts.Canceled++
		case velerov2alpha1.DataDownloadPhaseFailed:
			counts.Failed++
		case velerov2alpha1.DataDownloadPhaseCompleted:
			counts.Completed++
		}
	}
	return counts
}

// countPodVolumes counts by the phases that the status has fields for: OADP's CRD has none for Accepted, Prepared and Canceling,
// which appear in the total only, and Canceled counts as Failed.
func countPodVolumes(volumes []velerov1.PodVolumeRestore) *oadpv1alpha1.FileSystemPodVolumeRestores {
	counts := &oadpv1alpha1.FileSystemPodVolumeRestores{Total: len(volumes)}
	for i := range volumes {
		switch volumes[i].Status.Phase {
		case velerov1.PodVolumeRestorePhaseNew, "":
			counts.New++
		case velerov1.PodVolumeRestorePhaseInProgress:
			counts.InProgress++
		case velerov1.PodVolumeRestorePhaseFailed, velerov1.PodVolumeRestorePhaseCanceled:
			counts.Failed++
		case velerov1.PodVolumeRestorePhaseCompleted:
			counts.Completed++
		}
	}
	return counts
}

// VolumesDone reports whether volumes were counted and all of them are finished.
func VolumesDone(status *oadpv1alpha1.NonAdminRestoreStatus) bool {
	downloads, volumes := status.DataMoverDataDownloads, status.FileSystemPodVolumeRestores
	if downloads == nil && volumes == nil {
		return false
	}
	return (downloads == nil || downloads.Total == downloads.Completed+downloads.Failed+downloads.Canceled) &&
		(volumes == nil || volumes.Total == volumes.Completed+volumes.Failed)
}
