package backup_test

import (
	"strings"
	"testing"

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

// due returns worlds in which an activity has something to do, by its name and, after a comma, what that is.
func due(t *testing.T) map[string]*fake.World {
	t.Helper()
	toAnnounce, toRelease := activitytest.Created(t, "Completed"), deleting(t)
	toAnnounce.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	toRelease.Remove(toRelease.Velero(activitytest.Ours))
	progress := activitytest.Created(t, "InProgress")
	progress.SetVelero(activitytest.Ours, velerov1.BackupPhaseCompleted)
	asked := activitytest.Created(t, "Completed")
	asked.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	announced := activitytest.Created(t, "Completed")
	announced.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	activitytest.Do(t, announced, contract.MarkBackupDeleting.Name)
	forced := activitytest.Created(t, "Completed")
	forced.EditSpec(activitytest.Name, activitytest.ForceDelete)
	activitytest.Do(t, forced, contract.MarkBackupDeleting.Name)
	deleted := activitytest.Created(t, "Completed")
	deleted.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	activitytest.Do(t, deleted, contract.MarkBackupDeleting.Name)
	deleted.Remove(deleted.Velero(activitytest.Ours))
	unstarted := activitytest.Created(t, "")
	unstarted.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	activitytest.Do(t, unstarted, contract.MarkBackupDeleting.Name)
	worlds := map[string]*fake.World{
		contract.RefreshBackup.Name: progress,

		contract.RefreshBackup.Name + ", to announce a deletion": toAnnounce,
		contract.RefreshBackup.Name + ", to release the object":  toRelease,

		contract.StartBackup.Name:         fake.New(t, fake.NAB(activitytest.Name)),
		contract.AdmitBackup.Name:         fake.New(t, fake.NAB(activitytest.Name)),
		contract.MarkBackupDeleting.Name:  asked,
		contract.WithdrawBackup.Name:      unstarted,
		contract.RequestDeletion.Name:     announced,
		contract.DeleteVeleroObjects.Name: forced,
		contract.ReleaseBackup.Name:       deleted,
	}
	for _, w := range worlds {
		activitytest.Events(w)
	}
	return worlds
}

// activityOf is the name of an activity in due.
func activityOf(title string) string {
	activity, _, _ := strings.Cut(title, ", ")
	return activity
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
