package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// completed creates a backup and waits for its end.
func (x *tenant) completed(name string, changes ...change) *oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	return x.awaitVeleroPhase(x.backUp(name, changes...), velerov1.BackupPhaseCompleted)
}

// checkDeleted: nothing is left of the Velero objects; keptData says whether the files must be there still.
func checkDeleted(t *testing.T, veleroName string, keptData bool) {
	t.Helper()
	assert.Nil(t, veleroBackup(t, veleroName))
	assert.Empty(t, deleteRequests(t, veleroName))
	if keptData {
		assert.NotZero(t, files(t, veleroName), "the data stay")
	} else {
		assert.Zero(t, files(t, veleroName), "the data are gone")
	}
}

func deleteRequests(t *testing.T, backupName string) []velerov1.DeleteBackupRequest {
	t.Helper()
	var list velerov1.DeleteBackupRequestList
	require.NoError(t, admin.List(t.Context(), &list, client.InNamespace(env.OADPNamespace),
		client.MatchingLabels{velerov1.BackupNameLabel: backupName}))
	return list.Items
}

func TestADeletionThatTheSpecAsksFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		patch    string
		keptData bool
	}{
		"removes the data": {patch: `{"spec":{"deleteBackup":true}}`},
		// A replace drops the finalizer; the data must be deleted nevertheless, and the object stay until they are.
		"removes the data when a replace has dropped the finalizer": {
			patch: `{"metadata":{"finalizers":null},"spec":{"deleteBackup":true}}`,
		},
		// Velero's own sync brings the object back from the bucket later; what Holdfast deleted is gone now.
		"keeps the data when it is by force": {patch: `{"spec":{"forceDeleteBackup":true,"deleteBackup":true}}`, keptData: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTenant(t, "bob")
			nab := x.completed("doomed")
			x.patch(nab, test.patch)
			x.awaitGone(nab)
			checkDeleted(t, nab.Status.VeleroBackup.Name, test.keptData)
			awaitEnd(t, nab)
		})
	}
}

func TestPlainDeleteWaitsForTheUser(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "bob")
	nab := x.completed("kept")
	x.delete(nab)
	deleting := x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionDeleting, oadpv1alpha1.ReasonDeletionPending)
	assert.Equal(t, "backup deletion requires setting spec.deleteBackup or spec.forceDeleteBackup to true or finalizer removal",
		deleting.Message)
	x.await(nab, "phase Deleting, finalizer on", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseDeleting && len(now.Finalizers) == 1
	})
	awaitEnd(t, nab) // settled: the workflow has ended
	require.NotNil(t, veleroBackup(t, nab.Status.VeleroBackup.Name))

	x.patch(nab, `{"spec":{"deleteBackup":true}}`)
	x.awaitGone(nab)
	checkDeleted(t, nab.Status.VeleroBackup.Name, false)
}

func TestPlainDeleteEndsAtOnceWithNothingToProtect(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "bob")
	nab := x.completed("expired")
	veleroExpires(t, nab.Status.VeleroBackup.Name)
	gone := x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonVeleroBackupNotFound)
	assert.Contains(t, gone.Message, "has been removed")
	seen := x.await(nab, "queue position 0", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return now.Status.QueueInfo.EstimatedQueuePosition == 0 && now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
	})
	require.NotNil(t, seen)
	x.delete(nab)
	x.awaitGone(nab)
	awaitEnd(t, nab)
}

func TestRecreatedUnderItsOldNameIsANewBackup(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "bob")
	first := x.completed("again")
	x.patch(first, `{"spec":{"deleteBackup":true}}`)
	x.awaitGone(first)
	second := x.completed("again")
	assert.NotEqual(t, first.Status.VeleroBackup.Name, second.Status.VeleroBackup.Name)
	checkFinished(t, second, veleroBackup(t, second.Status.VeleroBackup.Name))
}

func TestDeletedNamespaceNeverHangs(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "bob")
	kept := x.completed("kept")
	pending := x.completed("pending")
	x.delete(pending) // waits for the user when the namespace goes
	x.awaitCondition(pending, oadpv1alpha1.NonAdminConditionDeleting, oadpv1alpha1.ReasonDeletionPending)

	require.NoError(t, admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}))
	awaitAllGone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}})
	for _, nab := range []*oadpv1alpha1.NonAdminBackup{kept, pending} {
		assert.NotNil(t, veleroBackup(t, nab.Status.VeleroBackup.Name), "the Velero Backup stays for the administrator")
		assert.NotZero(t, files(t, nab.Status.VeleroBackup.Name))
		awaitEnd(t, nab)
	}
}

func TestRefusedDeletionIsAskedAgain(t *testing.T) { // not parallel: it makes the storage location read-only
	x := newTenant(t, "bob")
	nab, givenUp := x.completed("stubborn"), x.completed("given-up")
	setAccessMode(t, velerov1.BackupStorageLocationAccessModeReadOnly)
	refused := func(now *oadpv1alpha1.NonAdminBackup) bool {
		request := now.Status.VeleroDeleteBackupRequest
		return request != nil && request.Status != nil && len(request.Status.Errors) > 0
	}
	x.patch(givenUp, `{"spec":{"deleteBackup":true}}`)
	x.await(givenUp, "a refusal", refused)
	x.patch(givenUp, `{"spec":{"forceDeleteBackup":true}}`)
	x.awaitGone(givenUp)
	checkDeleted(t, givenUp.Status.VeleroBackup.Name, true)
	x.patch(nab, `{"spec":{"deleteBackup":true}}`)
	seen := x.await(nab, "a refusal", refused)
	assert.Contains(t, seen.Status.VeleroDeleteBackupRequest.Status.Errors[0], "read-only")
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseDeleting, seen.Status.Phase)
	awaitDetails(t, nab, "spec.forceDeleteBackup")
	assert.NotZero(t, files(t, nab.Status.VeleroBackup.Name))

	setAccessMode(t, velerov1.BackupStorageLocationAccessModeReadWrite)
	x.awaitGone(nab)
	checkDeleted(t, nab.Status.VeleroBackup.Name, false)
	awaitEnd(t, nab)
}

func setAccessMode(t *testing.T, mode velerov1.BackupStorageLocationAccessMode) {
	t.Helper()
	location := &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: env.DefaultStorageLocation},
	}
	require.NoError(t, admin.Patch(t.Context(), location,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"accessMode":"`+string(mode)+`"}}`))))
}
