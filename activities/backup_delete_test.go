package activities_test

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

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
)

// Whatever a tenant writes into its status and labels, and whichever way it then asks for deletion: another tenant's
// Velero Backup and the requests for it stay as they are, and none is made.
func TestNothingIsDoneToAnotherTenantsBackup(t *testing.T) {
	type edit = func(*oadpv1alpha1.NonAdminBackup)
	createdOnce := func(nab *oadpv1alpha1.NonAdminBackup) { backup.ApplyCreated(nab) }
	claims := map[string][]edit{
		"by status":            {statusNames(victims), createdOnce},
		"by label":             {labelNames(victims)},
		"by status and label":  {statusNames(victims), labelNames(victims), createdOnce},
		"by an accepted spec":  {statusNames(victims), labelNames(victims), accept},
		"by a request's name":  {statusNames(ours), createdOnce, requestNames(victims + "-1")},
		"by all of it at once": {statusNames(victims), labelNames(victims), createdOnce, accept, requestNames(victims + "-1")},
	}
	wishes := map[string]func(*oadpv1alpha1.NonAdminBackupSpec){
		"nothing":      func(*oadpv1alpha1.NonAdminBackupSpec) {},
		"deletion":     deleteBackup,
		"force":        forceDelete,
		"both of them": func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.DeleteBackup, spec.ForceDeleteBackup = true, true },
	}
	for claim, edits := range claims {
		for wish, ask := range wishes {
			t.Run(claim+", asking for "+wish, func(t *testing.T) {
				victim, request := veleroObjects(victims, "crew")
				request.Status.Phase = velerov1.DeleteBackupRequestPhaseNew
				nab := fake.NAB(name)
				nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
				for _, edit := range edits {
					edit(nab)
				}
				ask(&nab.Spec)
				w := fake.New(t, nab, victim, request)
				before, requests := w.Velero(victims), w.Requests()
				for range 2 {
					do(t, w, all...)
				}
				remove(t, w, nab)
				do(t, w, all...)
				assert.Equal(t, before, w.Velero(victims))
				assert.Equal(t, requests, w.Requests())
				if ask(&nab.Spec); nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup {
					assert.Nil(t, w.Read(name), "the forger's own object ends")
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
		nab.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{Name: name, NACUUID: victims}
	}
}

// What happens to the object under test, and around it.

func removed(t *testing.T, w *fake.World) { remove(t, w, w.Read(name)) }

func backupGoes(t *testing.T, w *fake.World) { remove(t, w, w.Velero(ours)) }

func asked(t *testing.T, w *fake.World) {
	w.EditSpec(name, deleteBackup)
	removed(t, w)
}

func forced(t *testing.T, w *fake.World) {
	w.EditSpec(name, forceDelete)
	removed(t, w)
}

func namespaceGoes(t *testing.T, w *fake.World) {
	remove(t, w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}})
}

func TestADeletionIsAnnouncedAndCarriedOut(t *testing.T) {
	tests := map[string]struct {
		ask         func(t *testing.T, w *fake.World)
		wantMessage string
		wantDeleted bool
	}{
		"the data too": {
			func(_ *testing.T, w *fake.World) { w.EditSpec(name, deleteBackup) }, "backup accepted for deletion", true,
		},
		"the Velero Backup only": {
			func(_ *testing.T, w *fake.World) { w.EditSpec(name, forceDelete) }, "backup accepted for deletion", true,
		},
		"a plain delete": {
			removed, "backup deletion requires setting spec.deleteBackup or spec.forceDeleteBackup to true or finalizer removal", true,
		},
		"nothing": {func(*testing.T, *fake.World) {}, "", false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := created(t, "Completed")
			test.ask(t, w)
			view := do(t, w, contract.MarkBackupDeleting.Name)
			assert.Equal(t, test.wantDeleted, view.BeingDeleted)
			assert.Equal(t, test.wantDeleted, !w.Read(name).DeletionTimestamp.IsZero())
			events := told(w)
			if test.wantMessage == "" {
				assert.Empty(t, events)
				return
			}
			assert.Equal(t, "Deleting", view.Phase)
			assert.Equal(t, []string{"Normal Deleting " + test.wantMessage}, events)
			assert.NotNil(t, w.Velero(ours))
			assert.Empty(t, w.Requests())
		})
	}
}

// A plain delete that is followed by a decision says so.
func TestAPendingDeletionBecomesAccepted(t *testing.T) {
	w := created(t, "Completed")
	remove(t, w, w.Read(name))
	assert.Equal(t, contract.MarkPending, do(t, w, contract.MarkBackupDeleting.Name).Marked)
	w.EditSpec(name, deleteBackup)
	assert.Equal(t, contract.MarkAccepted, do(t, w, contract.MarkBackupDeleting.Name).Marked)
}

// An object that nobody protects ends with its deletion.
func TestAnObjectWithoutFinalizerEndsAtOnce(t *testing.T) {
	nab := fake.NAB(name)
	nab.Spec.DeleteBackup = true
	w := fake.New(t, nab)
	assert.Equal(t, contract.BackupView{Flow: contract.BackupFlow}, do(t, w, contract.MarkBackupDeleting.Name))
	assert.Nil(t, w.Read(name))
}

func deleting(t *testing.T) *fake.World {
	t.Helper()
	w := created(t, "Completed")
	w.EditSpec(name, deleteBackup)
	do(t, w, contract.MarkBackupDeleting.Name)
	told(w)
	return w
}

func TestRequestsToDeleteAreNumbered(t *testing.T) {
	w := deleting(t)
	want := []string{
		"Normal DeletionRequested asked Velero to delete the backup and its data (DeleteBackupRequest " + ours + "-1)",
		"Warning DeletionRetried Velero could not delete the backup; asked again (DeleteBackupRequest " + ours + "-2, attempt 2)",
	}
	for attempt := 1; attempt <= 2; attempt++ {
		for range 2 { // the second time the request is there already
			view, err := run(t, w, contract.RequestDeletion.Name, contract.BackupStep{Ref: fake.Ref(name), Attempt: attempt})
			require.NoError(t, err)
			assert.Equal(t, contract.DeleteRequestView{Attempt: attempt, Exists: true}, view.DeleteRequest)
		}
		assert.Len(t, w.Requests(), attempt)
		assert.Equal(t, fmt.Sprintf("%s-%d", ours, attempt), w.Read(name).Status.VeleroDeleteBackupRequest.Name)
		assert.Equal(t, []string{want[attempt-1]}, told(w))
	}
	for _, request := range w.Requests() {
		assert.Equal(t, ours, request.Spec.BackupName)
		assert.Equal(t, string(w.Velero(ours).UID), request.Labels[velerov1.BackupUIDLabel])
	}
}

// Velero's answer is repeated on the object.
func TestARefusedRequestIsShown(t *testing.T) {
	w := deleting(t)
	do(t, w, contract.RequestDeletion.Name)
	w.AnswerRequests("backup storage location is read-only")
	view := do(t, w, contract.RefreshBackup.Name)
	want := contract.DeleteRequestView{Attempt: 1, Exists: true, Failed: true, Error: "backup storage location is read-only"}
	assert.Equal(t, want, view.DeleteRequest)
	status := w.Read(name).Status.VeleroDeleteBackupRequest.Status
	assert.Equal(t, []string{"backup storage location is read-only"}, status.Errors)
}

func TestDataAreDeletedOnlyAsAsked(t *testing.T) {
	tests := map[string]func(t *testing.T, w *fake.World){
		"nobody asked":      func(*testing.T, *fake.World) {},
		"a plain delete":    removed,
		"by force, without": func(_ *testing.T, w *fake.World) { w.EditSpec(name, forceDelete) },
		"by force after all": func(_ *testing.T, w *fake.World) {
			w.EditSpec(name, deleteBackup)
			w.EditSpec(name, forceDelete)
		},
		"the namespace goes": func(t *testing.T, w *fake.World) {
			asked(t, w)
			namespaceGoes(t, w)
		},
		"the backup is gone":    func(t *testing.T, w *fake.World) { w.EditSpec(name, deleteBackup); backupGoes(t, w) },
		"the object is another": replace,
	}
	for title, ask := range tests {
		t.Run(title, func(t *testing.T) {
			w := created(t, "Completed")
			ask(t, w)
			do(t, w, contract.RequestDeletion.Name)
			assert.Empty(t, w.Requests())
		})
	}
}

// replace deletes the object under test for good and makes another of its name, which asks for deletion.
func replace(t *testing.T, w *fake.World) {
	t.Helper()
	nab := w.Read(name)
	nab.Finalizers = nil
	require.NoError(t, w.Client.Update(t.Context(), nab))
	remove(t, w, nab)
	again := fake.NAB(name)
	again.UID = "uid-2"
	again.Spec.DeleteBackup = true
	require.NoError(t, w.Client.Create(t.Context(), again))
}

// requestByHand is an administrator's, for the Velero Backup under test.
func requestByHand() *velerov1.DeleteBackupRequest {
	return &velerov1.DeleteBackupRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: "by-hand", Labels: map[string]string{velerov1.BackupNameLabel: ours},
	}}
}

// By force the Velero Backup and all requests for it go; the data stay, since no request is left to delete them.
func TestForceDeletesTheVeleroObjects(t *testing.T) {
	other, othersRequest := veleroObjects(victims, "crew")
	w := created(t, "Completed", other, othersRequest, requestByHand())
	w.EditSpec(name, deleteBackup)
	do(t, w, contract.MarkBackupDeleting.Name, contract.RequestDeletion.Name)
	require.Len(t, w.Requests(), 3)
	assert.NotNil(t, w.Velero(ours))
	do(t, w, contract.DeleteVeleroObjects.Name)
	require.Len(t, w.Requests(), 3, "without force nothing goes")

	w.EditSpec(name, forceDelete)
	view := do(t, w, contract.DeleteVeleroObjects.Name)
	assert.False(t, view.Velero.Exists)
	assert.False(t, view.DeleteRequest.Exists)
	assert.Nil(t, w.Velero(ours))
	require.Len(t, w.Requests(), 1)
	assert.Equal(t, othersRequest.Name, w.Requests()[0].Name)
	assert.NotNil(t, w.Velero(victims))
}

// The Velero Backup that is deleted is the one that was read: another of its name is looked at first.
func TestForceDoesNotDeleteABackupMadeAnew(t *testing.T) {
	w := created(t, "Completed")
	w.EditSpec(name, forceDelete)
	other, _ := veleroObjects(ours, "crew")
	w.Fail(func(verb string, object client.Object) error {
		if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "delete" {
			w.Fail(nil)
			remove(t, w, w.Velero(ours))
			return w.Client.Create(t.Context(), other)
		}
		return nil
	})
	view := do(t, w, contract.DeleteVeleroObjects.Name)
	assert.False(t, view.Velero.Exists)
	require.NotNil(t, w.Velero(ours))
	assert.Equal(t, types.UID("uid-of-the-victims"), w.Velero(ours).UID)
}

// A replace by a user may drop the finalizer in the very write that asks for deletion: without it the object would vanish
// and leave the backup behind.
func TestAnObjectIsProtectedBeforeItIsDeleted(t *testing.T) {
	w := created(t, "Completed")
	nab := w.Read(name)
	nab.Finalizers = nil
	nab.Spec.DeleteBackup = true
	nab.Generation++
	require.NoError(t, w.Client.Update(t.Context(), nab))
	view := do(t, w, contract.MarkBackupDeleting.Name)
	assert.True(t, view.Found && view.BeingDeleted && view.Finalizer, "%+v", view)
}

// Deletion comes first: it waits neither for a policy nor for a location.
func TestADeletionDoesNotWaitForAVerdict(t *testing.T) {
	for title, ask := range map[string]func(*testing.T, *fake.World){
		"with its data": asked, "by force": forced, "a plain delete": removed,
	} {
		t.Run(title, func(t *testing.T) {
			w := fake.New(t, fake.NAB(name))
			do(t, w, contract.AdmitBackup.Name)
			ask(t, w)
			w.PolicyErr = &check.UnusableError{Origin: "ConfigMap", Err: errors.New("not YAML")}
			assert.Empty(t, writesOf(w, func() {
				do(t, w, contract.RefreshBackup.Name, contract.AdmitBackup.Name, contract.CreateBackup.Name)
			}))
			do(t, w, contract.MarkBackupDeleting.Name, contract.ReleaseBackup.Name)
			assert.Nil(t, w.Read(name))
		})
	}
}

// An object so large that no status fits into it any more must go all the same.
func TestAnObjectTooLargeForItsStatusCanBeDeleted(t *testing.T) {
	w := created(t, "Completed")
	w.EditSpec(name, forceDelete)
	w.Fail(func(verb string, object client.Object) error {
		if isNAB(object) && verb == "patch status" {
			return errTooLarge
		}
		return nil
	})
	do(t, w, contract.RefreshBackup.Name, contract.MarkBackupDeleting.Name, contract.DeleteVeleroObjects.Name,
		contract.ReleaseBackup.Name)
	assert.Nil(t, w.Read(name))
	assert.Nil(t, w.Velero(ours))
}
