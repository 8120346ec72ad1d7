package restore_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
	restoreworkflow "holdfast.dev/holdfast/workflows/restore"
)

const again = "again"

var restored = fake.VeleroName(again)

// step runs an activity of restores under its wire name, as a worker does.
func step(t *testing.T, w *fake.World, activity string) (contract.RestoreView, error) {
	t.Helper()
	return stepWith(t, w, activity, contract.RestoreStep{Ref: fake.Ref(again), Volumes: true})
}

func stepWith(t *testing.T, w *fake.World, activity string, in contract.RestoreStep) (contract.RestoreView, error) {
	t.Helper()
	return activitytest.Performed[contract.RestoreView](t, w.Restores, activity, in)
}

func steps(t *testing.T, w *fake.World, activities ...string) contract.RestoreView {
	t.Helper()
	var view contract.RestoreView
	for _, activity := range activities {
		var err error
		view, err = step(t, w, activity)
		require.NoError(t, err, activity)
	}
	return view
}

// restoring returns a world with a restore of a complete backup, in an administrator's location or a tenant's.
func restoring(t *testing.T, tenant string, objects ...client.Object) *fake.World {
	t.Helper()
	location := fake.AdminLocation
	if tenant != "" {
		location = "team-store-1"
	}
	return fake.New(t, append(append(fake.Taken(activitytest.Name, location, tenant), fake.NAR(again, activitytest.Name)), objects...)...)
}

// started returns a world in which the Velero Restore was made, and Velero has got as far as the phase.
func started(t *testing.T, tenant string, phase velerov1.RestorePhase, objects ...client.Object) *fake.World {
	t.Helper()
	w := restoring(t, tenant, objects...)
	steps(t, w, contract.StartRestore.Name)
	w.SetRestore(restored, phase)
	steps(t, w, contract.RefreshRestore.Name)
	activitytest.Events(w)
	return w
}

func acceptedRestore(w *fake.World) metav1.Condition {
	if found := meta.FindStatusCondition(w.ReadRestore(again).Status.Conditions, "Accepted"); found != nil {
		return *found
	}
	return metav1.Condition{}
}

func TestARestoreIsStartedInOneStep(t *testing.T) {
	w := restoring(t, "")
	view := steps(t, w, contract.StartRestore.Name)
	assert.Equal(t, []string{"patch status NonAdminRestore", "patch NonAdminRestore", "create Restore", "patch status NonAdminRestore"},
		w.Writes(), "the name and the finalizer come before the Velero Restore")
	assert.True(t, view.EverCreated && view.Velero.Exists && view.Finalizer && view.SpecValidated)
	nar := w.ReadRestore(again)
	assert.Equal(t, restored, nar.Status.VeleroRestore.NACUUID)
	assert.Equal(t, "restore accepted", acceptedRestore(w).Message)
	queued := meta.FindStatusCondition(nar.Status.Conditions, "Queued")
	assert.Equal(t, "RestoreScheduled: Created Velero Restore object", queued.Reason+": "+queued.Message)
	made := w.VeleroRestore(restored)
	assert.True(t, owner.Restore.Names(made, fake.Namespace, again))
	assert.Equal(t, restored, made.Labels[oadpv1alpha1.NarOriginNACUUIDLabel])
	assert.Equal(t, []string{"Normal VeleroRestoreCreated created Velero Restore " + restored}, activitytest.Events(w))

	for range 2 {
		assert.Empty(t, activitytest.WritesOf(w, func() {
			steps(t, w, contract.StartRestore.Name, contract.AdmitRestore.Name, contract.RefreshRestore.Name,
				contract.DeleteRestore.Name, contract.ReleaseRestore.Name)
		}), "what is not due, or done, changes nothing")
	}
}

// Where OADP's CRDs are installed, the API server drops the fields that they do not have.
func TestWithOADPsCRDsNothingIsWrittenAgain(t *testing.T) {
	w := restoring(t, "")
	w.OADPsCRDs = true
	steps(t, w, contract.StartRestore.Name)
	for _, phase := range []velerov1.RestorePhase{velerov1.RestorePhaseInProgress, velerov1.RestorePhaseCompleted} {
		w.SetRestore(restored, phase)
		steps(t, w, contract.RefreshRestore.Name)
		assert.Empty(t, activitytest.WritesOf(w, func() {
			steps(t, w, contract.StartRestore.Name, contract.AdmitRestore.Name, contract.RefreshRestore.Name)
		}), phase)
	}
	view := steps(t, w, contract.RefreshRestore.Name)
	assert.True(t, view.FinalizationDue && view.SpecValidated)
}

// A worker of a release before package kstatus does not keep its conditions right.
func TestASummaryIsWrittenAgainAndIsNoNews(t *testing.T) {
	w := started(t, "", velerov1.RestorePhaseInProgress)
	nar := w.ReadRestore(again)
	meta.RemoveStatusCondition(&nar.Status.Conditions, kstatus.ConditionReconciling)
	require.NoError(t, w.Client.Status().Update(t.Context(), nar))
	assert.Equal(t, []string{"patch status NonAdminRestore"}, activitytest.WritesOf(w, func() {
		steps(t, w, contract.RefreshRestore.Name, contract.AdmitRestore.Name, contract.RefreshRestore.Name)
	}))
	assert.True(t, kstatus.Consistent(w.ReadRestore(again)))
	assert.Empty(t, activitytest.Events(w))
}

// A process may die after each write, and an answer may be lost after each.
func TestAStartThatIsCutOffAnywhereEndsInOneVeleroRestore(t *testing.T) {
	for _, tenant := range []string{"", fake.Namespace} {
		for at := 1; ; at++ {
			w := restoring(t, tenant)
			writes := 0
			w.Lose(func(string, client.Object) error {
				if writes++; writes == at {
					return fake.ErrAway
				}
				return nil
			})
			_, err := step(t, w, contract.StartRestore.Name)
			if err == nil {
				break
			}
			w.Lose(nil)
			view := steps(t, w, contract.RefreshRestore.Name, contract.StartRestore.Name)
			assert.True(t, view.EverCreated && view.Velero.Exists, "cut off at write %d", at)
			var list velerov1.RestoreList
			require.NoError(t, w.Client.List(t.Context(), &list))
			assert.Len(t, list.Items, 1)
			assert.Equal(t, tenant != "", w.Modifier(restored) != nil)
		}
	}
}

func TestAVeleroRestoreOfAnotherIsNeverTouched(t *testing.T) {
	owner := fake.NAR(again, activitytest.Name)
	owner.Namespace = "crew"
	for title, theirName := range map[string]string{"under the name needed": restored, "under the name in the status": activitytest.Victims} {
		t.Run(title, func(t *testing.T) {
			theirs := velero.NewRestore(owner, theirName, fake.OADPNamespace, velerov1.RestoreSpec{BackupName: "theirs"})
			theirs.Status.Phase = velerov1.RestorePhaseCompleted
			w := restoring(t, "", theirs)
			nar := w.ReadRestore(again)
			nar.Finalizers = []string{oadpv1alpha1.NarFinalizer}
			require.NoError(t, w.Client.Update(t.Context(), nar))
			nar.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{NACUUID: theirName, Name: theirName, Namespace: fake.OADPNamespace}
			require.NoError(t, w.Client.Status().Update(t.Context(), nar))
			before := w.VeleroRestore(theirName)
			steps(t, w, contract.RefreshRestore.Name, contract.StartRestore.Name, contract.RefreshRestore.Name)
			if status := w.ReadRestore(again).Status.VeleroRestore.Status; status != nil {
				assert.Empty(t, status.Phase, "what another's did is not shown")
			}
			w.Remove(w.ReadRestore(again))
			steps(t, w, contract.DeleteRestore.Name, contract.ReleaseRestore.Name)
			assert.Nil(t, w.ReadRestore(again))
			assert.Equal(t, before, w.VeleroRestore(theirName))
		})
	}
}

func TestADeletionWaitsForVelerosFiles(t *testing.T) {
	w := started(t, "", velerov1.RestorePhaseCompleted)
	w.Remove(w.ReadRestore(again))
	view := steps(t, w, contract.DeleteRestore.Name)
	assert.True(t, view.Marked && view.Velero.Deleting && view.Finalizer)
	deleting := meta.FindStatusCondition(w.ReadRestore(again).Status.Conditions, "Deleting")
	assert.Equal(t, "DeletionPending: restore accepted for deletion", deleting.Reason+": "+deleting.Message)
	assert.Empty(t, activitytest.WritesOf(w, func() { steps(t, w, contract.DeleteRestore.Name, contract.ReleaseRestore.Name) }))
	w.RemoveRestoreFiles(restored)
	assert.Equal(t, contract.RestoreView{}, steps(t, w, contract.ReleaseRestore.Name))
	assert.Equal(t, []string{
		"Normal Deleting restore accepted for deletion", "Normal Released nothing is left of the restore; what it restored stays",
	}, activitytest.Events(w))
}

// Deleted before, the Velero Restore would be written to in vain, for minutes, by the one worker that ends all restores.
func TestADeletionWaitsForVelerosEnd(t *testing.T) {
	for _, phase := range []velerov1.RestorePhase{
		velerov1.RestorePhaseInProgress, velerov1.RestorePhaseFinalizing, velerov1.RestorePhaseFinalizingPartiallyFailed,
	} {
		w := started(t, "", phase)
		w.Remove(w.ReadRestore(again))
		view := steps(t, w, contract.DeleteRestore.Name)
		assert.True(t, view.Marked && view.Velero.AtWork && !view.Velero.Deleting, phase)
		assert.Equal(t, []string{"Normal Deleting restore accepted for deletion"}, activitytest.Events(w), "the tenant is told at once")
		w.SetRestore(restored, velerov1.RestorePhaseCompleted)
		view = steps(t, w, contract.RefreshRestore.Name, contract.DeleteRestore.Name)
		assert.True(t, !view.Velero.AtWork && view.Velero.Deleting, phase)
	}
}

func TestWhatVeleroSaysOfARestoreIsToldOnce(t *testing.T) {
	for phase, want := range map[velerov1.RestorePhase]string{
		velerov1.RestorePhaseCompleted:        "Normal RestoreCompleted Velero completed the restore (0 warnings)",
		velerov1.RestorePhaseFailedValidation: "Warning RestoreFailed Velero ended the restore in phase FailedValidation (0 errors, 0 warnings) ",
		"Cancelled":                           "Warning RestoreCancelled the restore was cancelled in Velero: what it had restored stays, and nothing follows",
	} {
		w := started(t, "", velerov1.RestorePhaseInProgress)
		assert.Equal(t, 1, w.ReadRestore(again).Status.QueueInfo.EstimatedQueuePosition)
		w.SetRestore(restored, phase)
		steps(t, w, contract.RefreshRestore.Name, contract.RefreshRestore.Name)
		assert.Equal(t, []string{want}, activitytest.Events(w))
		assert.Zero(t, w.ReadRestore(again).Status.QueueInfo.EstimatedQueuePosition)
	}
	w := started(t, "", velerov1.RestorePhaseInProgress)
	w.Remove(w.VeleroRestore(restored))
	w.RemoveRestoreFiles(restored)
	assert.True(t, restoreworkflow.Settled(steps(t, w, contract.RefreshRestore.Name)))
	assert.Equal(t, "VeleroRestoreNotFound", acceptedRestore(w).Reason)
	assert.Equal(t, []string{"Warning VeleroRestoreNotFound its Velero Restore no longer exists"}, activitytest.Events(w))
	assert.True(t, restoreworkflow.Settled(steps(t, w, contract.StartRestore.Name)), "it is never made again")
	assert.Nil(t, w.VeleroRestore(restored))
}

func TestVolumesOfARestoreAreCounted(t *testing.T) {
	of := metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "v", Labels: map[string]string{velerov1.RestoreNameLabel: restored}}
	w := started(t, "", velerov1.RestorePhaseInProgress,
		&velerov1.PodVolumeRestore{ObjectMeta: of, Status: velerov1.PodVolumeRestoreStatus{Phase: velerov1.PodVolumeRestorePhaseInProgress}},
		&velerov2alpha1.DataDownload{ObjectMeta: of, Status: velerov2alpha1.DataDownloadStatus{Phase: velerov2alpha1.DataDownloadPhaseCompleted}})
	status := w.ReadRestore(again).Status
	assert.Equal(t, &oadpv1alpha1.FileSystemPodVolumeRestores{Total: 1, InProgress: 1}, status.FileSystemPodVolumeRestores)
	assert.Equal(t, &oadpv1alpha1.DataMoverDataDownloads{Total: 1, Completed: 1}, status.DataMoverDataDownloads)
}

func TestWhatTheAPIServerWillNeverTakeIsAVerdictOnTheRestore(t *testing.T) {
	invalid := apierrors.NewInvalid(velerov1.SchemeGroupVersion.WithKind("Restore").GroupKind(), "r", nil)
	for _, err := range []error{invalid, activitytest.ErrTooLarge, activitytest.ErrTerminating} {
		w := restoring(t, "")
		w.Fail(func(verb string, object client.Object) error {
			if _, is := object.(*velerov1.Restore); is && verb == "create" {
				return err
			}
			return nil
		})
		view := steps(t, w, contract.StartRestore.Name)
		assert.True(t, restoreworkflow.Settled(view))
		assert.Equal(t, "VeleroRestoreRefused", acceptedRestore(w).Reason)
	}
}

func TestAnErrorThatMayPassIsNoVerdictOnTheRestore(t *testing.T) {
	for _, err := range []error{activitytest.ErrForbidden, activitytest.ErrUnauthorized, fake.ErrAway} {
		w := restoring(t, "")
		w.FailReads(func(object runtime.Object) error {
			if _, is := object.(*oadpv1alpha1.NonAdminBackup); is {
				return err
			}
			return nil
		})
		_, got := step(t, w, contract.StartRestore.Name)
		require.ErrorContains(t, got, err.Error())
		assert.Equal(t, oadpv1alpha1.NonAdminPhaseNew, w.ReadRestore(again).Status.Phase, "seen, not judged")
	}
}

func TestAFinishedRestoreThatVeleroCallsInProgressIsTold(t *testing.T) {
	server := httptest.NewServer(&activitytest.Storage{Age: 6 * time.Minute})
	defer server.Close()
	w := started(t, "", velerov1.RestorePhaseInProgress)
	w.Restores.StallTimeout = 10 * time.Minute
	w.Sign = func(request *velerov1.DownloadRequest) string {
		assert.Equal(t, velerov1.DownloadTarget{Kind: velerov1.DownloadTargetKindRestoreResults, Name: restored}, request.Spec.Target)
		return server.URL + "/results?" + activitytest.Signature
	}
	assert.True(t, steps(t, w, contract.CheckRestoreStall.Name).Velero.Stalled)
	assert.Equal(t, []string{"Warning VeleroStalled " + oadpv1alpha1.MessageVeleroRestoreStalled}, activitytest.Events(w))
	assert.Empty(t, activitytest.DownloadRequests(t, w), "the signed URL is not left lying about")
	assert.Empty(t, activitytest.WritesOf(w, func() { steps(t, w, contract.CheckRestoreStall.Name) }), "told once")

	w.SetRestore(restored, velerov1.RestorePhaseFailed)
	assert.False(t, steps(t, w, contract.RefreshRestore.Name).Velero.Stalled)
}

func TestTheRestoresOfABackupGoWithItsData(t *testing.T) {
	other := fake.NAR("other", "weekly")
	w := restoring(t, "", other)
	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	steps(t, w, contract.StartRestore.Name)
	activitytest.Do(t, w, contract.MarkBackupDeleting.Name)
	assert.Nil(t, w.ReadRestore(again))
	assert.NotNil(t, w.ReadRestore("other"))

	w = restoring(t, "")
	w.EditSpec(activitytest.Name, activitytest.ForceDelete)
	activitytest.Do(t, w, contract.MarkBackupDeleting.Name)
	assert.NotNil(t, w.ReadRestore(again), "the data stay")
}
