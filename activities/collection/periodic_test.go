package collection_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/synchronization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestWhatVeleroSyncedBackupIsOfferedAgain(t *testing.T) {
	w := fake.New(t, activitytest.Listed(), activitytest.SyncedBackup(activitytest.Name))
	assert.Equal(t, contract.SynchronizationResult{Made: 1}, activitytest.SynchronizeNow(t, w))
	nab := w.Read(activitytest.Name)
	require.NotNil(t, nab)
	assert.Equal(t, activitytest.Ours, nab.Labels[oadpv1alpha1.NabSyncLabel])
	assert.Equal(t, synchronization.StateMade, synchronization.State(w.Velero(activitytest.Ours)))

	assert.Empty(t, activitytest.WritesOf(w, func() { assert.Zero(t, activitytest.SynchronizeNow(t, w)) }), "nothing is left to do")
	nab.Labels = nil
	require.NoError(t, w.Client.Delete(t.Context(), nab))
	assert.Equal(t, contract.SynchronizationResult{Noted: 1}, activitytest.SynchronizeNow(t, w), "its finalizer was removed by hand")
	assert.Nil(t, w.Read(activitytest.Name))
	assert.Empty(t, activitytest.WritesOf(w, func() { assert.Zero(t, activitytest.SynchronizeNow(t, w)) }))

	ledger := ledger.Ledger{Client: w.Client, OADPNamespace: fake.OADPNamespace}
	_, err := ledger.Remove(t.Context(), map[string]bool{activitytest.Ours: true})
	require.NoError(t, err)
	assert.Equal(t, contract.SynchronizationResult{Made: 1}, activitytest.SynchronizeNow(t, w), "an administrator says so")
}

func TestAProcessThatDiesBeforeTheMarkIsMadeUpFor(t *testing.T) {
	w := fake.New(t, activitytest.Listed(), activitytest.SyncedBackup(activitytest.Name))
	w.Fail(func(verb string, object client.Object) error {
		if _, ok := object.(*velerov1.Backup); ok && verb == "patch" {
			return fake.ErrAway
		}
		return nil
	})
	_, err := activitytest.Periodic[contract.SynchronizationResult](t, w, contract.SynchronizeBackups.Name, contract.ScheduledInput{})
	require.ErrorContains(t, err, fake.ErrAway.Error())
	require.NotNil(t, w.Read(activitytest.Name))
	w.Fail(nil)
	activitytest.SynchronizeNow(t, w)
	assert.Equal(t, synchronization.StateMade, synchronization.State(w.Velero(activitytest.Ours)))
}

func TestNothingIsMade(t *testing.T) {
	gone := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: fake.Namespace, DeletionTimestamp: &metav1.Time{Time: time.Now()}, Finalizers: []string{"kubernetes"},
	}}
	off := &metav1.Duration{}
	for sentence, tt := range map[string]struct {
		objects []client.Object
		period  *metav1.Duration
	}{
		"in a namespace that is gone":          {objects: []client.Object{gone}},
		"in a namespace that is being deleted": {objects: []client.Object{going}},
		"where the object is there, whosever":  {objects: []client.Object{fake.NAB(activitytest.Name)}},
		"while the policy's period is zero":    {period: off},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := fake.New(t, append(tt.objects, activitytest.Listed(), activitytest.SyncedBackup(activitytest.Name))...)
			w.Policy.BackupSyncPeriod = tt.period
			assert.Empty(t, activitytest.WritesOf(w, func() { assert.Zero(t, activitytest.SynchronizeNow(t, w)) }))
		})
	}
}

func TestOneRefusalKeepsNobodyWaiting(t *testing.T) {
	w := fake.New(t, activitytest.Listed(), activitytest.SyncedBackup("full"), activitytest.SyncedBackup(activitytest.Name))
	w.Fail(func(verb string, object client.Object) error {
		if verb == "create" && object.GetName() == "full" {
			return apierrors.NewForbidden(oadpv1alpha1.Resource("nonadminbackups"), "full", nil)
		}
		return nil
	})
	assert.Equal(t, contract.SynchronizationResult{Made: 1, Refused: 1}, activitytest.SynchronizeNow(t, w))
}

func TestReleasingEntersWhatStays(t *testing.T) {
	entries := func(w *fake.World) map[string]ledger.Entry {
		ledger := ledger.Ledger{Client: w.Client, OADPNamespace: fake.OADPNamespace}
		found, err := ledger.Read(t.Context())
		require.NoError(t, err)
		return found
	}
	t.Run("by force, before the Velero Backup goes", func(t *testing.T) {
		w := activitytest.Created(t, velerov1.BackupPhaseCompleted)
		w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.ForceDeleteBackup = true })
		activitytest.Do(t, w, contract.MarkBackupDeleting.Name, contract.DeleteVeleroObjects.Name, contract.ReleaseBackup.Name)
		assert.Equal(t, ledger.ByForce, entries(w)[activitytest.Ours].Reason)
		assert.Nil(t, w.Read(activitytest.Name))
	})
	t.Run("not if the data are deleted", func(t *testing.T) {
		w := activitytest.Created(t, velerov1.BackupPhaseCompleted)
		w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
		activitytest.Do(t, w, contract.MarkBackupDeleting.Name, contract.RequestDeletion.Name)
		w.AnswerRequests("")
		activitytest.Do(t, w, contract.ReleaseBackup.Name)
		assert.Nil(t, w.Read(activitytest.Name))
		assert.Empty(t, entries(w))
	})
	t.Run("while its Velero Backup is away", func(t *testing.T) {
		w := activitytest.Created(t, velerov1.BackupPhaseCompleted)
		w.Remove(w.Velero(activitytest.Ours))
		w.Remove(w.Read(activitytest.Name))
		activitytest.Do(t, w, contract.ReleaseBackup.Name)
		assert.Nil(t, w.Read(activitytest.Name))
		assert.Equal(t, ledger.ByRemoval, entries(w)[activitytest.Ours].Reason)
	})
	t.Run("not under another's name", func(t *testing.T) {
		forged := fake.NAB(activitytest.Name)
		forged.Labels = map[string]string{oadpv1alpha1.NabSyncLabel: activitytest.Victims}
		forged.Finalizers = []string{oadpv1alpha1.NabFinalizer}
		forged.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
		forged.Spec.ForceDeleteBackup = true
		w := fake.New(t, forged)
		activitytest.Do(t, w, contract.MarkBackupDeleting.Name, contract.DeleteVeleroObjects.Name, contract.ReleaseBackup.Name)
		assert.Nil(t, w.Read(activitytest.Name))
		assert.Empty(t, entries(w))
	})
	t.Run("the finalizer stays if it cannot be entered", func(t *testing.T) {
		w := activitytest.Created(t, velerov1.BackupPhaseCompleted)
		w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.ForceDeleteBackup = true })
		activitytest.Do(t, w, contract.MarkBackupDeleting.Name)
		w.Fail(func(_ string, object client.Object) error {
			if _, ok := object.(*corev1.ConfigMap); ok {
				return fake.ErrAway
			}
			return nil
		})
		_, err := activitytest.Run(t, w, contract.DeleteVeleroObjects.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
		require.ErrorContains(t, err, fake.ErrAway.Error())
		assert.NotNil(t, w.Velero(activitytest.Ours))
	})
}

func TestOrphansAreCollected(t *testing.T) {
	copied := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), copied, fake.OADPNamespace, copied)}
	refused := activitytest.SyncedBackup("refused")
	refused.Status = velerov1.BackupStatus{Phase: velerov1.BackupPhaseFailedValidation}
	data := activitytest.SyncedBackup(activitytest.Name)
	w := fake.New(t, activitytest.Listed(), secret, refused, data)
	assert.Equal(t, contract.CollectionResult{Deleted: []contract.CollectedKind{{Kind: "Secret", Count: 1}, {Kind: "Backup", Count: 1}}},
		activitytest.CollectNow(t, w))
	assert.NotNil(t, w.Velero(activitytest.Ours), "its data are the administrator's")
	assert.Empty(t, activitytest.WritesOf(w, func() { assert.Zero(t, activitytest.CollectNow(t, w)) }))
}

func TestNothingIsCollectedBeforeVeleroHasLooked(t *testing.T) {
	copied := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), copied, fake.OADPNamespace, copied)}
	fresh := activitytest.Listed()
	fresh.Status.LastSyncedTime = nil
	w := fake.New(t, fresh, secret)
	assert.Equal(t, contract.CollectionResult{Waiting: "default"}, activitytest.CollectNow(t, w))
	assert.NotNil(t, w.Copy("own"))
}

func TestNothingIsCollectedWhenTheOriginCannotBeRead(t *testing.T) {
	copied := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), copied, fake.OADPNamespace, copied)}
	for what, answer := range map[string]error{
		"the API server is away": fake.ErrAway,
		"the kind is not served": apierrors.NewGenericServerResponse(404, "get", oadpv1alpha1.Resource("x"), "own", "page not found", 0, true),
	} {
		t.Run(what, func(t *testing.T) {
			w := fake.New(t, activitytest.Listed(), secret.DeepCopy())
			w.FailReads(func(object runtime.Object) error {
				if _, ok := object.(*oadpv1alpha1.NonAdminBackupStorageLocation); ok {
					return answer
				}
				return nil
			})
			_, err := activitytest.Periodic[contract.CollectionResult](t, w, contract.CollectOrphans.Name, contract.CollectionInput{})
			require.Error(t, err)
			assert.NotNil(t, w.Copy("own"))
		})
	}
}

func TestWhatIsYoungIsLeft(t *testing.T) {
	copied := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), copied, fake.OADPNamespace, copied)}
	secret.CreationTimestamp = metav1.Now()
	w := fake.New(t, activitytest.Listed(), secret)
	assert.Equal(t, contract.CollectionResult{Young: 1}, activitytest.CollectNow(t, w))
	assert.NotNil(t, w.Copy("own"))
}
