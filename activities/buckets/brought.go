package buckets

import (
	"maps"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
)

// pvcNameAnnotation is Velero's: the claim of a volume.
const pvcNameAnnotation = "velero.io/pvc-name"

// generateNameLength is how much of metadata.generateName the API server keeps.
const generateNameLength = 58

// NewBackup returns the Velero Backup for what a bucket holds under a name, as Velero would synchronize it, and false if it is
// not one of the tenant's, or has not ended. Of the metadata only what says whose it is, and what a restore uses, is taken over.
func NewBackup(
	stored *velerov1.Backup, name, tenant string, location *velerov1.BackupStorageLocation, now time.Time,
) (*velerov1.Backup, bool) {
	key, proven := owner.Backup.Proven(stored)
	phase, ended := velero.SynchronizedPhase(stored, now)
	if !proven || stored.Name != name || key.Namespace != tenant || !ended || begins(stored, now) {
		return nil, false
	}
	made := &velerov1.Backup{
		ObjectMeta: owner.Backup.Meta(&metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, name, location.Namespace, name),
		Spec:       *stored.Spec.DeepCopy(),
		Status:     *stored.Status.DeepCopy(),
	}
	maps.Copy(made.Labels, only(stored.Labels, holdfastv1alpha1.LabelRecordedPlan))
	maps.Copy(made.Annotations, only(stored.Annotations, velerov1.SourceClusterK8sGitVersionAnnotation,
		velerov1.SourceClusterK8sMajorVersionAnnotation, velerov1.SourceClusterK8sMinorVersionAnnotation,
		velerov1.ResourceTimeoutAnnotation))
	made.Labels[velerov1.StorageLocationLabel] = location.Name
	made.Annotations[FilesAnnotation] = ""
	made.Spec.StorageLocation = location.Name
	made.Spec.Hooks = velerov1.BackupHooks{} // it runs no more
	made.Status.Phase = phase
	return made, true
}

// begins: it is in the future. The newest Backup is what Velero restores of a Schedule.
func begins(stored *velerov1.Backup, now time.Time) bool {
	soon := now.Add(time.Hour) // clocks differ
	begin, end := stored.Status.StartTimestamp, stored.Status.CompletionTimestamp
	return (begin != nil && begin.After(soon)) || (end != nil && end.After(soon))
}

// only keeps labels or annotations of those keys. A label of a Schedule is none of them: an administrator may restore the newest
// Backup that has it.
func only(all map[string]string, keys ...string) map[string]string {
	kept := map[string]string{}
	for _, key := range keys {
		if value, found := all[key]; found {
			kept[key] = value
		}
	}
	return kept
}

// NewPodVolumeBackup returns the PodVolumeBackup of a Backup for one that its bucket lists, and false if it is none that has
// ended: a node agent would carry out another, for any Pod that it names.
func NewPodVolumeBackup(stored *velerov1.PodVolumeBackup, of *velerov1.Backup, tenant string) (*velerov1.PodVolumeBackup, bool) {
	phase := stored.Status.Phase
	ended := phase == velerov1.PodVolumeBackupPhaseCompleted || phase == velerov1.PodVolumeBackupPhaseFailed
	given := of.Name + "-" // Velero has the API server add the rest
	named := strings.HasPrefix(stored.Name, given[:min(len(given), generateNameLength)]) &&
		len(validation.IsDNS1123Subdomain(stored.Name)) == 0
	if !ended || !named || stored.Spec.Pod.Namespace != tenant {
		return nil, false
	}
	made := &velerov1.PodVolumeBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: stored.Name,
			Labels: only(stored.Labels, velerov1.PVCUIDLabel), Annotations: only(stored.Annotations, pvcNameAnnotation),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup", Name: of.Name, UID: of.UID, Controller: ptr.To(true),
			}},
		},
		Spec: *stored.Spec.DeepCopy(), Status: *stored.Status.DeepCopy(),
	}
	made.Labels[velerov1.BackupNameLabel] = of.Name // no longer than a label's value may be
	made.Labels[velerov1.BackupUIDLabel] = string(of.UID)
	made.Spec.BackupStorageLocation = of.Spec.StorageLocation
	return made, true
}
