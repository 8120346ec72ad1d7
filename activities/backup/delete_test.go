package backup_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
)

// Whatever a tenant writes into its status and labels, and whichever way it then asks for deletion: another tenant's
// Velero Backup and the requests for it stay as they are, and none is made.
func TestNothingIsDoneToAnotherTenantsBackup(t *testing.T) {
	type edit = func(*oadpv1alpha1.NonAdminBackup)
	createdOnce := func(nab *oadpv1alpha1.NonAdminBackup) { lifecycle.ApplyCreated(nab) }
	claims := map[string][]edit{
		"by status":            {statusNames(activitytest.Victims), createdOnce},
		"by label":             {labelNames(activitytest.Victims)},
		"by status and label":  {statusNames(activitytest.Victims), labelNames(activitytest.Victims), createdOnce},
		"by an accepted spec":  {statusNames(activitytest.Victims), labelNames(activitytest.Victims), accept},
		"by a request's name":  {statusNames(activitytest.Ours), createdOnce, requestNames(activitytest.Victims + "-1")},
		"by all of it at once": {statusNames(activitytest.Victims), labelNames(activitytest.Victims), createdOnce, accept, requestNames(activitytest.Victims + "-1")},
	}
	wishes := map[string]func(*oadpv1alpha1.NonAdminBackupSpec){
		"nothing":      func(*oadpv1alpha1.NonAdminBackupSpec) {},
		"deletion":     activitytest.DeleteBackup,
		"force":        activitytest.ForceDelete,
		"both of them": func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.DeleteBackup, spec.ForceDeleteBackup = true, true },
	}
	for claim, edits := range claims {
		for action, ask := range wishes {
			t.Run(claim+", asking for "+action, func(t *testing.T) {
				victim, request := veleroObjects(activitytest.Victims, "crew")
				request.Status.Phase = velerov1.DeleteBackupRequestPhaseNew
				nab := fake.NAB(activitytest.Name)
				nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
				for _, edit := range edits {
					edit(nab)
				}
				ask(&nab.Spec)
				w := fake.New(t, nab, victim, request)
				before, requests := w.Velero(activitytest.Victims), w.Requests()
				for range 2 {
					activitytest.Do(t, w, all...)
				}
				w.Remove(nab)
				activitytest.Do(t, w, all...)
				assert.Equal(t, before, w.Velero(activitytest.Victims))
				assert.Equal(t, requests, w.Requests())
				if ask(&nab.Spec); nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup {
					assert.Nil(t, w.Read(activitytest.Name), "the forger's own object ends")
				}
			})
		}
	}
}

func accept(nab *oadpv1alpha1.NonAdminBackup) {
	nab.Status.Conditions = append(nab.Status.Conditions, metav1.Condition{
		Type: "Accepted", Status: "True", Reason: "BackupAccepted", ObservedGeneration: nab.Generation,
	})
}

func requestNames(name string) func(*oadpv1alpha1.NonAdminBackup) {
	return func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{Name: name, NACUUID: activitytest.Victims}
	}
}

// What happens to the object under test, and around it.

func removed(_ *testing.T, w *fake.World) { w.Remove(w.Read(activitytest.Name)) }

func backupGoes(_ *testing.T, w *fake.World) { w.Remove(w.Velero(activitytest.Ours)) }

func asked(t *testing.T, w *fake.World) {
	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	removed(t, w)
}

func forced(t *testing.T, w *fake.World) {
	w.EditSpec(activitytest.Name, activitytest.ForceDelete)
	removed(t, w)
}

func namespaceGoes(_ *testing.T, w *fake.World) {
	w.Remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}})
}

func TestADeletionIsAnnouncedAndCarriedOut(t *testing.T) {
	tests := map[string]struct {
		ask         func(t *testing.T, w *fake.World)
		wantMessage string
		wantDeleted bool
	}{
		"the data too": {
			func(_ *testing.T, w *fake.World) { w.EditSpec(activitytest.Name, activitytest.DeleteBackup) }, "backup accepted for deletion", true,
		},
		"the Velero Backup only": {
			func(_ *testing.T, w *fake.World) { w.EditSpec(activitytest.Name, activitytest.ForceDelete) }, "backup accepted for deletion", true,
		},
		"a plain delete": {
			removed, "backup deletion requires setting spec.deleteBackup or spec.forceDeleteBackup to true or finalizer removal", true,
		},
		"nothing": {func(*testing.T, *fake.World) {}, "", false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := activitytest.Created(t, "Completed")
			test.ask(t, w)
			view := activitytest.Do(t, w, contract.MarkBackupDeleting.Name)
			assert.Equal(t, test.wantDeleted, view.BeingDeleted)
			assert.Equal(t, test.wantDeleted, !w.Read(activitytest.Name).DeletionTimestamp.IsZero())
			events := activitytest.Events(w)
			if test.wantMessage == "" {
				assert.Empty(t, events)
				return
			}
			assert.Equal(t, "Deleting", view.Phase)
			assert.Equal(t, []string{"Normal Deleting " + test.wantMessage}, events)
			assert.NotNil(t, w.Velero(activitytest.Ours))
			assert.Empty(t, w.Requests())
		})
	}
}

// A plain delete that is followed by a decision says so.
func TestAPendingDeletionBecomesAccepted(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	w.Remove(w.Read(activitytest.Name))
	assert.Equal(t, contract.MarkPending, activitytest.Do(t, w, contract.MarkBackupDeleting.Name).Marked)
	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	assert.Equal(t, contract.MarkAccepted, activitytest.Do(t, w, contract.MarkBackupDeleting.Name).Marked)
}

// An object that nobody protects ends with its deletion.
func TestAnObjectWithoutFinalizerEndsAtOnce(t *testing.T) {
	nab := fake.NAB(activitytest.Name)
	nab.Spec.DeleteBackup = true
	w := fake.New(t, nab)
	assert.Equal(t, contract.BackupView{}, activitytest.Do(t, w, contract.MarkBackupDeleting.Name))
	assert.Nil(t, w.Read(activitytest.Name))
}

func deleting(t *testing.T) *fake.World {
	t.Helper()
	w := activitytest.Created(t, "Completed")
	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	activitytest.Do(t, w, contract.MarkBackupDeleting.Name)
	activitytest.Events(w)
	return w
}

func TestRequestsToDeleteAreNumbered(t *testing.T) {
	w := deleting(t)
	want := []string{
		"Normal DeletionRequested requested the deletion of the backup and its data from Velero (DeleteBackupRequest " + activitytest.Ours + "-1)",
		"Warning DeletionRetried Velero could not delete the backup; the request was sent again (DeleteBackupRequest " + activitytest.Ours + "-2, attempt 2)",
	}
	for attempt := 1; attempt <= 2; attempt++ {
		for range 2 { // the second time the request is there already
			view, err := activitytest.Run(t, w, contract.RequestDeletion.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name), Attempt: attempt})
			require.NoError(t, err)
			assert.Equal(t, contract.DeleteRequestView{Attempt: attempt, Exists: true}, view.DeleteRequest)
		}
		assert.Len(t, w.Requests(), attempt)
		assert.Equal(t, fmt.Sprintf("%s-%d", activitytest.Ours, attempt), w.Read(activitytest.Name).Status.VeleroDeleteBackupRequest.Name)
		assert.Equal(t, []string{want[attempt-1]}, activitytest.Events(w))
	}
	for _, request := range w.Requests() {
		assert.Equal(t, activitytest.Ours, request.Spec.BackupName)
		assert.Equal(t, string(w.Velero(activitytest.Ours).UID), request.Labels[velerov1.BackupUIDLabel])
	}
}

// Velero's answer is repeated on the object.
func TestARefusedRequestIsShown(t *testing.T) {
	w := deleting(t)
	activitytest.Do(t, w, contract.RequestDeletion.Name)
	w.AnswerRequests("backup storage location is read-only")
	view := activitytest.Do(t, w, contract.RefreshBackup.Name)
	want := contract.DeleteRequestView{Attempt: 1, Exists: true, Failed: true, Error: "backup storage location is read-only"}
	assert.Equal(t, want, view.DeleteRequest)
	status := w.Read(activitytest.Name).Status.VeleroDeleteBackupRequest.Status
	assert.Equal(t, []string{"backup storage location is read-only"}, status.Errors)
}

func TestDataAreDeletedOnlyAsAsked(t *testing.T) {
	tests := map[string]func(t *testing.T, w *fake.World){
		"nobody asked":      func(*testing.T, *fake.World) {},
		"a plain delete":    removed,
		"by force, without": func(_ *testing.T, w *fake.World) { w.EditSpec(activitytest.Name, activitytest.ForceDelete) },
		"by force after all": func(_ *testing.T, w *fake.World) {
			w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
			w.EditSpec(activitytest.Name, activitytest.ForceDelete)
		},
		"the namespace goes": func(t *testing.T, w *fake.World) {
			asked(t, w)
			namespaceGoes(t, w)
		},
		"the backup is gone": func(t *testing.T, w *fake.World) {
			w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
			backupGoes(t, w)
		},
		"the object is another": replace,
	}
	for title, ask := range tests {
		t.Run(title, func(t *testing.T) {
			w := activitytest.Created(t, "Completed")
			ask(t, w)
			activitytest.Do(t, w, contract.RequestDeletion.Name)
			assert.Empty(t, w.Requests())
		})
	}
}

// replace deletes the object under test for good and makes another of its name, which asks for deletion.
func replace(t *testing.T, w *fake.World) {
	t.Helper()
	nab := w.Read(activitytest.Name)
	nab.Finalizers = nil
	require.NoError(t, w.Client.Update(t.Context(), nab))
	w.Remove(nab)
	again := fake.NAB(activitytest.Name)
	again.UID = "uid-2"
	again.Spec.DeleteBackup = true
	require.NoError(t, w.Client.Create(t.Context(), again))
}

// requestByHand is an administrator's, for the Velero Backup under test.
func requestByHand() *velerov1.DeleteBackupRequest {
	return &velerov1.DeleteBackupRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: "by-hand", Labels: map[string]string{velerov1.BackupNameLabel: activitytest.Ours},
	}}
}

// By force the Velero Backup and all requests for it go; the data stay, since no request is left to delete them.
func TestForceDeletesTheVeleroObjects(t *testing.T) {
	other, othersRequest := veleroObjects(activitytest.Victims, "crew")
	w := activitytest.Created(t, "Completed", other, othersRequest, requestByHand())
	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	activitytest.Do(t, w, contract.MarkBackupDeleting.Name, contract.RequestDeletion.Name)
	require.Len(t, w.Requests(), 3)
	assert.NotNil(t, w.Velero(activitytest.Ours))
	activitytest.Do(t, w, contract.DeleteVeleroObjects.Name)
	require.Len(t, w.Requests(), 3, "without force nothing goes")

	w.EditSpec(activitytest.Name, activitytest.ForceDelete)
	view := activitytest.Do(t, w, contract.DeleteVeleroObjects.Name)
	assert.False(t, view.Velero.Exists)
	assert.False(t, view.DeleteRequest.Exists)
	assert.Nil(t, w.Velero(activitytest.Ours))
	require.Len(t, w.Requests(), 1)
	assert.Equal(t, othersRequest.Name, w.Requests()[0].Name)
	assert.NotNil(t, w.Velero(activitytest.Victims))
}

// The Velero Backup that is deleted is the one that was read: another of its name is looked at first.
func TestForceDoesNotDeleteABackupRecreated(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	w.EditSpec(activitytest.Name, activitytest.ForceDelete)
	other, _ := veleroObjects(activitytest.Ours, "crew")
	w.Fail(func(verb string, object client.Object) error {
		if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "delete" {
			w.Fail(nil)
			w.Remove(w.Velero(activitytest.Ours))
			return w.Client.Create(t.Context(), other)
		}
		return nil
	})
	view := activitytest.Do(t, w, contract.DeleteVeleroObjects.Name)
	assert.False(t, view.Velero.Exists)
	require.NotNil(t, w.Velero(activitytest.Ours))
	assert.Equal(t, types.UID("uid-of-the-victims"), w.Velero(activitytest.Ours).UID)
}

// A replace by a user may drop the finalizer in the very write that asks for deletion: without it the object would vanish
// and leave the backup behind.
func TestAnObjectIsProtectedBeforeItIsDeleted(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	nab := w.Read(activitytest.Name)
	nab.Finalizers = nil
	nab.Spec.DeleteBackup = true
	nab.Generation++
	require.NoError(t, w.Client.Update(t.Context(), nab))
	view := activitytest.Do(t, w, contract.MarkBackupDeleting.Name)
	assert.True(t, view.Found && view.BeingDeleted && view.Finalizer, "%+v", view)
}

// Deletion comes first: it waits neither for a policy nor for a location.
func TestADeletionDoesNotWaitForAVerdict(t *testing.T) {
	for title, ask := range map[string]func(*testing.T, *fake.World){
		"with its data": asked, "by force": forced, "a plain delete": removed,
	} {
		t.Run(title, func(t *testing.T) {
			w := fake.New(t, fake.NAB(activitytest.Name))
			activitytest.Do(t, w, contract.AdmitBackup.Name)
			ask(t, w)
			w.PolicyErr = &check.UnusableError{Origin: "ConfigMap", Err: errors.New("not YAML")}
			assert.Empty(t, activitytest.WritesOf(w, func() { activitytest.Do(t, w, contract.StartBackup.Name) }))
			activitytest.Do(t, w, contract.RefreshBackup.Name, contract.RefreshBackup.Name)
			assert.Nil(t, w.Read(activitytest.Name))
		})
	}
}

// An object so large that no status fits into it any more must go all the same.
func TestAnObjectTooLargeForItsStatusCanBeDeleted(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	w.EditSpec(activitytest.Name, activitytest.ForceDelete)
	w.Fail(func(verb string, object client.Object) error {
		if isNAB(object) && verb == "patch status" {
			return activitytest.ErrTooLarge
		}
		return nil
	})
	activitytest.Do(t, w, contract.RefreshBackup.Name, contract.MarkBackupDeleting.Name, contract.DeleteVeleroObjects.Name,
		contract.ReleaseBackup.Name)
	assert.Nil(t, w.Read(activitytest.Name))
	assert.Nil(t, w.Velero(activitytest.Ours))
}
