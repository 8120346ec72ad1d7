package backup_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// What a tenant reads with `kubectl describe`, from the first to the last.
func TestALifeIsToldInEvents(t *testing.T) {
	w := fake.New(t, fake.NAB(activitytest.Name), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}})
	step := func(activities ...string) []string {
		activitytest.Do(t, w, activities...)
		activitytest.Do(t, w, activities...) // again, after a kill: nothing is told twice
		return activitytest.Events(w)
	}
	velero := func(phase velerov1.BackupPhase) []string {
		w.SetVelero(activitytest.Ours, phase)
		return step(contract.RefreshBackup.Name)
	}
	assert.Equal(t, []string{"Normal VeleroBackupCreated created Velero Backup " + activitytest.Ours}, step(contract.StartBackup.Name))
	assert.Empty(t, velero("Queued"))
	assert.Empty(t, velero("InProgress"))
	assert.Empty(t, velero("Finalizing"))
	assert.Equal(t, []string{"Normal BackupCompleted Velero completed the backup (0 warnings)"}, velero("Completed"))

	w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = []string{"x"} })
	assert.Equal(t, []string{"Warning InvalidBackupSpec NonAdminBackup spec.backupSpec.excludedNamespaces is restricted"},
		step(contract.RefreshBackup.Name, contract.AdmitBackup.Name))
	w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = nil })
	assert.Equal(t, []string{"Normal BackupAccepted backup accepted"},
		step(contract.RefreshBackup.Name, contract.AdmitBackup.Name))

	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	assert.Equal(t, []string{"Normal Deleting backup accepted for deletion"}, step(contract.MarkBackupDeleting.Name))
	assert.Equal(t, []string{
		"Normal DeletionRequested requested the deletion of the backup and its data from Velero (DeleteBackupRequest " + activitytest.Ours + "-1)",
	}, step(contract.RequestDeletion.Name))
	w.AnswerRequests("")
	assert.Equal(t, []string{"Normal Released nothing is left of the backup"},
		step(contract.RefreshBackup.Name, contract.ReleaseBackup.Name))
}

func TestAnEndOtherThanCompletionIsAWarning(t *testing.T) {
	for _, phase := range []velerov1.BackupPhase{"PartiallyFailed", "Failed", "FailedValidation"} {
		t.Run(string(phase), func(t *testing.T) {
			w := activitytest.Created(t, "InProgress")
			w.SetVelero(activitytest.Ours, phase)
			velero := w.Velero(activitytest.Ours)
			velero.Status.Errors, velero.Status.Warnings, velero.Status.FailureReason = 2, 3, "disk full"
			require.NoError(t, w.Client.Update(t.Context(), velero))
			activitytest.Do(t, w, contract.RefreshBackup.Name)
			assert.Equal(t, []string{
				"Warning BackupFailed Velero ended the backup in phase " + string(phase) + " (2 errors, 3 warnings) disk full",
			}, activitytest.Events(w))
		})
	}
}

func TestACancelledBackupHasItsOwnSentence(t *testing.T) {
	w := activitytest.Created(t, "InProgress")
	w.SetVelero(activitytest.Ours, "Cancelling")
	activitytest.Do(t, w, contract.RefreshBackup.Name)
	assert.Empty(t, activitytest.Events(w), "it is not over")
	w.SetVelero(activitytest.Ours, "Cancelled")
	activitytest.Do(t, w, contract.RefreshBackup.Name)
	assert.Equal(t, []string{"Warning BackupCancelled the backup was cancelled in Velero: nothing can be restored from it; create a new NonAdminBackup"}, activitytest.Events(w))
	assert.EqualValues(t, "Cancelled", w.Read(activitytest.Name).Status.VeleroBackup.Status.Phase)
}

// What Velero quotes of a ConfigMap is for administrators, whose tenants may name ConfigMaps that they may not read.
func TestNoContentOfAConfigMapReachesATenant(t *testing.T) {
	const quoting = "invalid resource policies: fail to read the ResourcePolicies from ConfigMap openshift-adp/x: " +
		"failed to decode yaml data into resource policies  yaml: unmarshal errors:\n" +
		"  line 1: cannot unmarshal !!str `hunter2...` into resourcepolicies.ResourcePolicies"
	w := activitytest.Created(t, "New")
	w.SetVelero(activitytest.Ours, velerov1.BackupPhaseFailedValidation)
	velero := w.Velero(activitytest.Ours)
	velero.Status.ValidationErrors = []string{"a selector too many", quoting}
	require.NoError(t, w.Client.Update(t.Context(), velero))
	activitytest.Do(t, w, contract.RefreshBackup.Name)
	events := activitytest.Events(w)
	require.Len(t, events, 1)
	assert.Contains(t, events[0], "a selector too many; Velero cannot use the ConfigMap")
	seen := w.Read(activitytest.Name).Status.VeleroBackup.Status.ValidationErrors
	require.Len(t, seen, 2)
	assert.Contains(t, seen[1], "Velero cannot use the ConfigMap")
	for _, text := range append(seen, events...) {
		assert.NotContains(t, text, "hunter2")
	}
	assert.Contains(t, w.Velero(activitytest.Ours).Status.ValidationErrors[1], "hunter2", "administrators read it there")
}

func TestALossIsToldOnce(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	w.Remove(w.Velero(activitytest.Ours))
	for range 3 {
		activitytest.Do(t, w, contract.RefreshBackup.Name)
	}
	assert.Equal(t, []string{"Warning VeleroBackupNotFound its Velero Backup no longer exists"}, activitytest.Events(w))
	assert.Equal(t, "VeleroBackupNotFound", accepted(w.Read(activitytest.Name)).Reason)
	assert.Zero(t, w.Read(activitytest.Name).Status.QueueInfo.EstimatedQueuePosition)
}

// Its loss during its deletion is what was asked for.
func TestTheEndOfADeletedBackupIsNoLoss(t *testing.T) {
	w := deleting(t)
	w.Remove(w.Velero(activitytest.Ours))
	activitytest.Do(t, w, contract.RefreshBackup.Name)
	assert.Equal(t, []string{"Normal Released nothing is left of the backup"}, activitytest.Events(w))
	assert.Nil(t, w.Read(activitytest.Name))
}

// Progress is mirrored, and no tenant wants an Event for each item.
func TestProgressIsNotTold(t *testing.T) {
	w := activitytest.Created(t, "InProgress")
	for items := 1; items <= 3; items++ {
		velero := w.Velero(activitytest.Ours)
		velero.Status.Progress = &velerov1.BackupProgress{TotalItems: 3, ItemsBackedUp: items}
		require.NoError(t, w.Client.Update(t.Context(), velero))
		view := activitytest.Do(t, w, contract.RefreshBackup.Name)
		assert.Equal(t, items, view.Velero.ItemsBackedUp)
		assert.Equal(t, items, w.Read(activitytest.Name).Status.VeleroBackup.Status.Progress.ItemsBackedUp)
	}
	assert.Empty(t, activitytest.Events(w))
}

// A finalizer taken off by hand is put back without a word: nothing has changed for the tenant.
func TestAFinalizerTakenOffIsPutBack(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	nab := w.Read(activitytest.Name)
	nab.Finalizers = nil
	require.NoError(t, w.Client.Update(t.Context(), nab))
	assert.Equal(t, []string{"patch NonAdminBackup"}, activitytest.WritesOf(w, func() { activitytest.Do(t, w, contract.AdmitBackup.Name) }))
	assert.Contains(t, w.Read(activitytest.Name).Finalizers, oadpv1alpha1.NabFinalizer)
	assert.Empty(t, activitytest.Events(w))
}

// The Velero Backup may come back: a location that was away is synced again.
func TestABackupThatCameBackIsAcceptedAgain(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	velero := w.Velero(activitytest.Ours)
	w.Remove(velero)
	activitytest.Do(t, w, contract.RefreshBackup.Name)
	activitytest.Events(w)
	velero.ResourceVersion = ""
	require.NoError(t, w.Client.Create(t.Context(), velero))
	view := activitytest.Do(t, w, contract.RefreshBackup.Name)
	assert.False(t, view.SpecValidated, "what was said of it no longer holds")
	view = activitytest.Do(t, w, contract.AdmitBackup.Name)
	assert.True(t, view.Accepted && view.SpecValidated && view.Velero.Exists, "%+v", view)
	assert.Equal(t, []string{"Normal BackupAccepted backup accepted"}, activitytest.Events(w))
}

// The API server takes no longer note, and would drop the Event in silence.
func TestANoteFitsIntoAnEvent(t *testing.T) {
	w := activitytest.Created(t, "InProgress")
	w.SetVelero(activitytest.Ours, velerov1.BackupPhaseFailed)
	velero := w.Velero(activitytest.Ours)
	velero.Status.FailureReason = strings.Repeat("é", 5000)
	require.NoError(t, w.Client.Update(t.Context(), velero))
	activitytest.Do(t, w, contract.RefreshBackup.Name)
	events := activitytest.Events(w)
	require.Len(t, events, 1)
	note := strings.TrimPrefix(events[0], "Warning BackupFailed ")
	assert.LessOrEqual(t, len(note), 1024)
	assert.True(t, utf8.ValidString(note))
	assert.True(t, strings.HasSuffix(note, "é..."))
}
