package velero

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/trim"
)

// storedIn are specs of which only the storage location is kept.
var storedIn = trim.NewCommon(func(location string) *velerov1.BackupSpec {
	return &velerov1.BackupSpec{StorageLocation: location}
})

var nonAdminBackups = caches.New(caches.Kind{
	Keys: []string{
		holdfastv1alpha1.LabelPlan, holdfastv1alpha1.LabelHold, holdfastv1alpha1.LabelUsual, holdfastv1alpha1.LabelDefaultPlan,
		holdfastv1alpha1.AnnotationPlanUID,
	},
	Finalizers: []string{oadpv1alpha1.NabFinalizer},
	Phase:      func(object client.Object) string { return string(object.(*oadpv1alpha1.NonAdminBackup).Status.Phase) },
}, func(kept, of *oadpv1alpha1.NonAdminBackup) {
	spec, status := &of.Spec, &of.Status
	kept.Spec = oadpv1alpha1.NonAdminBackupSpec{
		Unreadable: trim.Text(spec.Unreadable), DeleteBackup: spec.DeleteBackup, ForceDeleteBackup: spec.ForceDeleteBackup,
		BackupSpec: keptSpec(kept, status.Phase, spec.BackupSpec, func(spec *velerov1.BackupSpec) *velerov1.BackupSpec {
			return storedIn.Of(trim.Clip(spec.StorageLocation, trim.NameBytes+1))
		}),
	}
	kept.Status = oadpv1alpha1.NonAdminBackupStatus{
		Phase: status.Phase, QueueInfo: status.QueueInfo, Conditions: keptConditions(status.Conditions),
		DataMoverDataUploads: status.DataMoverDataUploads, FileSystemPodVolumeBackups: status.FileSystemPodVolumeBackups,
	}
	if drill := status.NewestDrill(); drill != nil {
		kept.Status.LastDrill = &oadpv1alpha1.BackupDrill{Name: trim.Name(drill.Name), Concluded: drill.Concluded}
	}
	if made := status.VeleroBackup; made != nil {
		kept.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: trim.Name(made.NACUUID), Name: trim.Name(made.Name)}
		if made.Spec != nil {
			kept.Status.VeleroBackup.Spec = storedIn.Of(trim.Name(made.Spec.StorageLocation))
		}
		if made.Status != nil {
			kept.Status.VeleroBackup.Status = &velerov1.BackupStatus{
				Phase: made.Status.Phase, StartTimestamp: made.Status.StartTimestamp,
			}
		}
	}
	if asked := status.VeleroDeleteBackupRequest; asked != nil {
		kept.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{Name: trim.Name(asked.Name)}
	}
})

var nonAdminRestores = caches.New(caches.Kind{
	Finalizers: []string{oadpv1alpha1.NarFinalizer},
	Phase:      func(object client.Object) string { return string(object.(*oadpv1alpha1.NonAdminRestore).Status.Phase) },
}, func(kept, of *oadpv1alpha1.NonAdminRestore) {
	spec, status := &of.Spec, &of.Status
	kept.Spec = oadpv1alpha1.NonAdminRestoreSpec{
		Unreadable: trim.Text(spec.Unreadable),
		RestoreSpec: keptSpec(kept, status.Phase, spec.RestoreSpec, func(spec *velerov1.RestoreSpec) *velerov1.RestoreSpec {
			return &velerov1.RestoreSpec{BackupName: trim.Clip(spec.BackupName, trim.NameBytes+1)}
		}),
	}
	kept.Status = oadpv1alpha1.NonAdminRestoreStatus{
		Phase: status.Phase, QueueInfo: status.QueueInfo, Conditions: keptConditions(status.Conditions),
		DataMoverDataDownloads: status.DataMoverDataDownloads, FileSystemPodVolumeRestores: status.FileSystemPodVolumeRestores,
	}
	if made := status.VeleroRestore; made != nil {
		kept.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{NACUUID: trim.Name(made.NACUUID), Name: trim.Name(made.Name)}
		if made.Status != nil {
			kept.Status.VeleroRestore.Status = &velerov1.RestoreStatus{Phase: made.Status.Phase}
		}
	}
	if status.Finalization != nil {
		kept.Status.Finalization = &oadpv1alpha1.RestoreFinalization{Phase: status.Finalization.Phase}
	}
})

func keptConditions(all []metav1.Condition) []metav1.Condition {
	return trim.Conditions(all, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.NonAdminConditionQueued,
		oadpv1alpha1.NonAdminConditionDeleting, oadpv1alpha1.NonAdminConditionVeleroStalled,
		oadpv1alpha1.NonAdminConditionFinalized, kstatus.ConditionComplete, kstatus.ConditionReconciling, kstatus.ConditionStalled)
}

// keptSpec is what is kept of a spec: all as long as it may be judged again, otherwise what is named in it. If it is too large to
// be judged, its size replaces it.
func keptSpec[S any](kept client.Object, phase oadpv1alpha1.NonAdminPhase, spec *S, named func(*S) *S) *S {
	switch {
	case spec == nil:
		return nil
	case phase != oadpv1alpha1.NonAdminPhaseBackingOff, trim.OmittedBytes(kept) > 0:
	case trim.Footprint(spec) <= trim.SpecBytes:
		return spec
	default:
		trim.Omit(kept, spec)
	}
	return named(spec)
}
