package trim

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/download"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// trimmed is an object's metadata, trimmed.
func trimmed(object metav1.ObjectMeta) metav1.ObjectMeta {
	metadata(&object)
	return object
}

// tenants is the common part of the tenants' objects that Velero serves: a Velero spec, of which little is kept unless it may
// be judged again, and conditions.
type tenants[S any] struct {
	meta       metav1.ObjectMeta
	phase      oadpv1alpha1.NonAdminPhase
	spec       *S
	unreadable string
	conditions []metav1.Condition
}

// kept trims the object. named is what is always kept of the spec: the name in it.
func (t tenants[S]) kept(named func(of *S) *S) tenants[S] {
	kept := tenants[S]{
		meta: trimmed(t.meta), phase: t.phase, unreadable: text(t.unreadable),
		conditions: conditions(t.conditions, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.NonAdminConditionQueued,
			oadpv1alpha1.NonAdminConditionDeleting, oadpv1alpha1.NonAdminConditionVeleroStalled),
	}
	switch {
	case t.spec == nil:
	case judged(&kept.meta, t.phase, t.spec):
		kept.spec = t.spec
	default:
		kept.spec = named(t.spec)
	}
	return kept
}

// judged reports whether a spec is kept: as long as it may be judged again. If it is too large then, its size replaces it.
func judged(of *metav1.ObjectMeta, phase oadpv1alpha1.NonAdminPhase, spec any) bool {
	if phase != oadpv1alpha1.NonAdminPhaseBackingOff || OmittedBytes(of) > 0 {
		return false
	}
	if footprint(spec) > keptSpecBytes {
		omit(of, jsonSize(spec))
		return false
	}
	return true
}

func nonAdminBackup(of *oadpv1alpha1.NonAdminBackup) *oadpv1alpha1.NonAdminBackup {
	status := &of.Status
	shape := tenants[velerov1.BackupSpec]{of.ObjectMeta, status.Phase, of.Spec.BackupSpec, of.Spec.Unreadable, status.Conditions}
	shape = shape.kept(func(spec *velerov1.BackupSpec) *velerov1.BackupSpec {
		return &velerov1.BackupSpec{StorageLocation: clip(spec.StorageLocation, keptName+1)}
	})
	kept := &oadpv1alpha1.NonAdminBackup{
		TypeMeta: of.TypeMeta, ObjectMeta: shape.meta,
		Spec: oadpv1alpha1.NonAdminBackupSpec{
			BackupSpec: shape.spec, Unreadable: shape.unreadable,
			DeleteBackup: of.Spec.DeleteBackup, ForceDeleteBackup: of.Spec.ForceDeleteBackup,
		},
		Status: oadpv1alpha1.NonAdminBackupStatus{
			Phase: shape.phase, QueueInfo: status.QueueInfo, Conditions: shape.conditions,
			DataMoverDataUploads: status.DataMoverDataUploads, FileSystemPodVolumeBackups: status.FileSystemPodVolumeBackups,
		},
	}
	if made := status.VeleroBackup; made != nil {
		kept.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: name(made.NACUUID), Name: name(made.Name)}
		if made.Spec != nil {
			kept.Status.VeleroBackup.Spec = &velerov1.BackupSpec{StorageLocation: name(made.Spec.StorageLocation)}
		}
		if made.Status != nil {
			kept.Status.VeleroBackup.Status = &velerov1.BackupStatus{
				Phase: made.Status.Phase, StartTimestamp: made.Status.StartTimestamp,
			}
		}
	}
	if asked := status.VeleroDeleteBackupRequest; asked != nil {
		kept.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{Name: name(asked.Name)}
	}
	return kept
}

func nonAdminRestore(of *oadpv1alpha1.NonAdminRestore) *oadpv1alpha1.NonAdminRestore {
	status := &of.Status
	shape := tenants[velerov1.RestoreSpec]{of.ObjectMeta, status.Phase, of.Spec.RestoreSpec, of.Spec.Unreadable, status.Conditions}
	shape = shape.kept(func(spec *velerov1.RestoreSpec) *velerov1.RestoreSpec {
		return &velerov1.RestoreSpec{BackupName: clip(spec.BackupName, keptName+1)}
	})
	kept := &oadpv1alpha1.NonAdminRestore{
		TypeMeta: of.TypeMeta, ObjectMeta: shape.meta,
		Spec: oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: shape.spec, Unreadable: shape.unreadable},
		Status: oadpv1alpha1.NonAdminRestoreStatus{
			Phase: shape.phase, QueueInfo: status.QueueInfo, Conditions: shape.conditions,
			DataMoverDataDownloads: status.DataMoverDataDownloads, FileSystemPodVolumeRestores: status.FileSystemPodVolumeRestores,
		},
	}
	if made := status.VeleroRestore; made != nil {
		kept.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{NACUUID: name(made.NACUUID), Name: name(made.Name)}
		if made.Status != nil {
			kept.Status.VeleroRestore.Status = &velerov1.RestoreStatus{Phase: made.Status.Phase}
		}
	}
	if status.Finalization != nil {
		kept.Status.Finalization = &oadpv1alpha1.RestoreFinalization{Phase: status.Finalization.Phase}
	}
	return kept
}

// nonAdminDownload replaces a signed URL by a digest.
func nonAdminDownload(of *oadpv1alpha1.NonAdminDownloadRequest) *oadpv1alpha1.NonAdminDownloadRequest {
	kept := &oadpv1alpha1.NonAdminDownloadRequest{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec.Target = velerov1.DownloadTarget{
		Kind: velerov1.DownloadTargetKind(clip(string(of.Spec.Target.Kind), keptName)), Name: clip(of.Spec.Target.Name, keptName+1),
	}
	kept.Status.Phase = of.Status.Phase
	for _, each := range last(of.Status.Conditions) {
		kept.Status.Conditions = append(kept.Status.Conditions, condition(each))
	}
	if answer := of.Status.VeleroDownloadRequest.Status; answer != nil {
		kept.Status.VeleroDownloadRequest.Status = &velerov1.DownloadRequestStatus{
			Phase: answer.Phase, Expiration: answer.Expiration, DownloadURL: download.Digest(answer.DownloadURL),
		}
	}
	return kept
}

// nonAdminLocation keeps all fields that are compared with the objects made for it, up to a limit.
func nonAdminLocation(of *oadpv1alpha1.NonAdminBackupStorageLocation) *oadpv1alpha1.NonAdminBackupStorageLocation {
	kept := &oadpv1alpha1.NonAdminBackupStorageLocation{
		TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta), Spec: of.Spec, Status: of.Status,
	}
	kept.Spec.Unreadable = text(of.Spec.Unreadable)
	if footprint(of.Spec)+footprint(of.Status) <= keptLocationBytes {
		return kept
	}
	omit(kept, jsonSize(of.Spec)+jsonSize(of.Status))
	kept.Spec.BackupStorageLocationSpec = credentialOnly(of.Spec.BackupStorageLocationSpec)
	kept.Status = oadpv1alpha1.NonAdminBackupStorageLocationStatus{
		Phase: of.Status.Phase, Conditions: conditions(of.Status.Conditions,
			oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.NonAdminConditionClusterAdminApproved),
	}
	if made := of.Status.VeleroBackupStorageLocation; made != nil {
		kept.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: text(made.NACUUID)}
	}
	return kept
}

// credentialOnly keeps of a storage location's spec only the name of its Secret.
func credentialOnly(spec *velerov1.BackupStorageLocationSpec) *velerov1.BackupStorageLocationSpec {
	if spec == nil {
		return nil
	}
	kept := &velerov1.BackupStorageLocationSpec{}
	if spec.Credential != nil {
		kept.Credential = spec.Credential.DeepCopy()
		kept.Credential.Name, kept.Credential.Key = name(spec.Credential.Name), name(spec.Credential.Key)
	}
	return kept
}

func approvalRequest(
	of *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest,
) *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest {
	kept := &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{
		TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta), Spec: of.Spec, Status: of.Status,
	}
	const two = 2 // it holds the spec that was approved, and the pending one
	if footprint(of.Spec)+footprint(of.Status) <= two*keptLocationBytes {
		return kept
	}
	omit(kept, jsonSize(of.Spec)+jsonSize(of.Status))
	kept.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecision(name(string(of.Spec.PendingApprovalDecision)))
	kept.Status = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestStatus{
		ObservedGeneration: of.Status.ObservedGeneration,
		Conditions:         conditions(of.Status.Conditions, oadpv1alpha1.NonAdminConditionClusterAdminApproved),
	}
	if asked := of.Status.VeleroBackupStorageLocationApprovalRequest; asked != nil {
		kept.Status.VeleroBackupStorageLocationApprovalRequest = &oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest{
			PendingSpec: credentialOnly(asked.PendingSpec), ApprovedSpec: credentialOnly(asked.ApprovedSpec),
		}
	}
	return kept
}
