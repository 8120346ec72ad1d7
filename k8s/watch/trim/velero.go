package trim

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/activities/download"
)

func veleroBackup(of *velerov1.Backup) *velerov1.Backup {
	kept := &velerov1.Backup{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec.StorageLocation = name(of.Spec.StorageLocation)
	kept.Status = velerov1.BackupStatus{
		Phase: of.Status.Phase, QueuePosition: of.Status.QueuePosition, Progress: of.Status.Progress,
		StartTimestamp: of.Status.StartTimestamp, CompletionTimestamp: of.Status.CompletionTimestamp,
	}
	return kept
}

func veleroRestore(of *velerov1.Restore) *velerov1.Restore {
	kept := &velerov1.Restore{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec.BackupName = name(of.Spec.BackupName)
	kept.Status = velerov1.RestoreStatus{
		Phase: of.Status.Phase, Progress: of.Status.Progress,
		StartTimestamp: of.Status.StartTimestamp, CompletionTimestamp: of.Status.CompletionTimestamp,
	}
	return kept
}

func deleteRequest(of *velerov1.DeleteBackupRequest) *velerov1.DeleteBackupRequest {
	kept := &velerov1.DeleteBackupRequest{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec.BackupName = name(of.Spec.BackupName)
	kept.Status.Phase = of.Status.Phase
	if errors := of.Status.Errors; len(errors) > 0 {
		kept.Status.Errors = []string{text(errors[0])}
	}
	return kept
}

// downloadRequest replaces the signed URL by a digest.
func downloadRequest(of *velerov1.DownloadRequest) *velerov1.DownloadRequest {
	kept := &velerov1.DownloadRequest{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec.Target = velerov1.DownloadTarget{Kind: of.Spec.Target.Kind, Name: name(of.Spec.Target.Name)}
	kept.Status = velerov1.DownloadRequestStatus{
		Phase: of.Status.Phase, Expiration: of.Status.Expiration, DownloadURL: download.Digest(of.Status.DownloadURL),
	}
	return kept
}

// veleroLocation keeps all fields that are compared with the spec, up to a limit.
func veleroLocation(of *velerov1.BackupStorageLocation) *velerov1.BackupStorageLocation {
	kept := &velerov1.BackupStorageLocation{
		TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta), Spec: of.Spec, Status: of.Status,
	}
	kept.Labels, kept.Annotations = marks(kept.Labels, of.Labels), marks(kept.Annotations, of.Annotations)
	kept.Status.Message = text(of.Status.Message)
	if footprint(of.Spec) > keptLocationBytes {
		omit(kept, jsonSize(of.Spec))
		kept.Spec = *credentialOnly(&of.Spec)
	}
	return kept
}
