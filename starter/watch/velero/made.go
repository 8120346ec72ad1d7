package velero

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/trim"
)

var veleroBackups = caches.New(caches.Kind{
	InOADP: true, Phase: velero.PhaseOf, Keys: []string{holdfastv1alpha1.AnnotationDigests},
}, func(kept, of *velerov1.Backup) {
	kept.Spec.StorageLocation = trim.Name(of.Spec.StorageLocation)
	kept.Status = velerov1.BackupStatus{
		Phase: of.Status.Phase, QueuePosition: of.Status.QueuePosition, Progress: of.Status.Progress,
		StartTimestamp: of.Status.StartTimestamp, CompletionTimestamp: of.Status.CompletionTimestamp,
	}
})

var veleroRestores = caches.New(caches.Kind{
	InOADP: true, Phase: velero.PhaseOf, Keys: caches.Drills,
}, func(kept, of *velerov1.Restore) {
	kept.Spec.BackupName = trim.Name(of.Spec.BackupName)
	kept.Status = velerov1.RestoreStatus{
		Phase: of.Status.Phase, Progress: of.Status.Progress,
		StartTimestamp: of.Status.StartTimestamp, CompletionTimestamp: of.Status.CompletionTimestamp,
	}
})

var deleteRequests = caches.New(caches.Kind{InOADP: true, Keys: []string{velerov1.BackupNameLabel}},
	func(kept, of *velerov1.DeleteBackupRequest) {
		kept.Spec.BackupName = trim.Name(of.Spec.BackupName)
		kept.Status.Phase = of.Status.Phase
		if errors := of.Status.Errors; len(errors) > 0 {
			kept.Status.Errors = []string{trim.Text(errors[0])}
		}
	})

// Of volumes, the label names the Velero object that they belong to.
var (
	ofBackup          = caches.Kind{InOADP: true, Keys: []string{velerov1.BackupNameLabel}}
	ofRestore         = caches.Kind{InOADP: true, Keys: []string{velerov1.RestoreNameLabel}}
	podVolumeBackups  = caches.Metadata(velerov1.SchemeGroupVersion.WithKind("PodVolumeBackup"), ofBackup)
	dataUploads       = caches.Metadata(velerov2alpha1.SchemeGroupVersion.WithKind("DataUpload"), ofBackup)
	podVolumeRestores = caches.Metadata(velerov1.SchemeGroupVersion.WithKind("PodVolumeRestore"), ofRestore)
	dataDownloads     = caches.Metadata(velerov2alpha1.SchemeGroupVersion.WithKind("DataDownload"), ofRestore)
)
