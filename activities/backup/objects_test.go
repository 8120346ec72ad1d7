package backup_test

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// all are the activities in the order in which they run for a backup.
var all = []string{
	contract.RefreshBackup.Name, contract.StartBackup.Name, contract.AdmitBackup.Name,
	contract.MarkBackupDeleting.Name, contract.WithdrawBackup.Name, contract.RequestDeletion.Name,
	contract.DeleteVeleroObjects.Name, contract.ReleaseBackup.Name,
}

// accepted returns the condition of that name.
func accepted(nab *oadpv1alpha1.NonAdminBackup) metav1.Condition {
	if found := meta.FindStatusCondition(nab.Status.Conditions, "Accepted"); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// veleroObjects are those of another tenant, or of an origin that Holdfast does not know.
func veleroObjects(backupName, originNamespace string) (*velerov1.Backup, *velerov1.DeleteBackupRequest) {
	owner := fake.NAB(activitytest.Name)
	owner.Namespace = originNamespace
	made := velero.NewBackup(owner, backupName, fake.OADPNamespace, velerov1.BackupSpec{})
	made.UID = "uid-of-the-victims"
	made.Status.Phase = velerov1.BackupPhaseCompleted
	return made, velero.NewDeleteRequest(owner, made, 1)
}

var errInvalid = apierrors.NewInvalid(velerov1.SchemeGroupVersion.WithKind("Backup").GroupKind(), "b", nil)
