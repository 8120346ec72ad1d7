package activities_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/released"
	"holdfast.dev/holdfast/k8s/synchronize"
	"holdfast.dev/holdfast/workflows/contract"
)

// periodic runs an activity of periodic work as a worker does.
func periodic[Out any](t *testing.T, w *fake.World, activity string, input any) (Out, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	w.RegisterPeriodic(env)
	var out Out
	answer, err := env.ExecuteActivity(activity, input)
	if err == nil {
		require.NoError(t, answer.Get(&out))
	}
	return out, err
}

func synchronizeNow(t *testing.T, w *fake.World) contract.SynchronizationResult {
	t.Helper()
	result, err := periodic[contract.SynchronizationResult](t, w, contract.SynchronizeBackups.Name, contract.SynchronizationInput{})
	require.NoError(t, err)
	return result
}

// lookedInto is an administrator's location, into which Velero has looked.
func lookedInto() *velerov1.BackupStorageLocation {
	return &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "default"},
		Status: velerov1.BackupStorageLocationStatus{
			Phase: velerov1.BackupStorageLocationPhaseAvailable, LastSyncedTime: &metav1.Time{Time: time.Now()},
		},
	}
}

// broughtBack is a finished Velero Backup, whose object Velero has made an hour after its end.
func broughtBack(of string) *velerov1.Backup {
	nab, vname := fake.NAB(of), fake.VeleroName(of)
	made := &velerov1.Backup{ObjectMeta: owner.Backup.Meta(nab, vname, fake.OADPNamespace, vname)}
	made.UID, made.CreationTimestamp = "velero-uid", metav1.NewTime(time.Now().Add(-time.Minute))
	made.Spec.StorageLocation = "default"
	ended := metav1.NewTime(time.Now().Add(-time.Hour))
	made.Status = velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &ended, CompletionTimestamp: &ended}
	return made
}

func TestWhatVeleroBroughtBackIsOfferedAgain(t *testing.T) {
	w := fake.New(t, lookedInto(), broughtBack(name))
	assert.Equal(t, contract.SynchronizationResult{Made: 1}, synchronizeNow(t, w))
	nab := w.Read(name)
	require.NotNil(t, nab)
	assert.Equal(t, ours, nab.Labels[oadpv1alpha1.NabSyncLabel])
	assert.Equal(t, synchronize.StateMade, synchronize.State(w.Velero(ours)))

	assert.Empty(t, writesOf(w, func() { assert.Zero(t, synchronizeNow(t, w)) }), "nothing is left to do")
	nab.Labels = nil
	require.NoError(t, w.Client.Delete(t.Context(), nab))
	assert.Equal(t, contract.SynchronizationResult{Noted: 1}, synchronizeNow(t, w), "its finalizer was removed by hand")
	assert.Nil(t, w.Read(name))
	assert.Empty(t, writesOf(w, func() { assert.Zero(t, synchronizeNow(t, w)) }))

	ledger := released.Ledger{Client: w.Client, OADPNamespace: fake.OADPNamespace}
	_, err := ledger.Remove(t.Context(), map[string]bool{ours: true})
	require.NoError(t, err)
	assert.Equal(t, contract.SynchronizationResult{Made: 1}, synchronizeNow(t, w), "an administrator says so")
}

func TestAProcessThatDiesBeforeTheMarkIsMadeUpFor(t *testing.T) {
	w := fake.New(t, lookedInto(), broughtBack(name))
	w.Fail(func(verb string, object client.Object) error {
		if _, ok := object.(*velerov1.Backup); ok && verb == "patch" {
			return fake.ErrAway
		}
		return nil
	})
	_, err := periodic[contract.SynchronizationResult](t, w, contract.SynchronizeBackups.Name, contract.SynchronizationInput{})
	require.ErrorContains(t, err, fake.ErrAway.Error())
	require.NotNil(t, w.Read(name))
	w.Fail(nil)
	synchronizeNow(t, w)
	assert.Equal(t, synchronize.StateMade, synchronize.State(w.Velero(ours)))
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
		"where the object is there, whosever":  {objects: []client.Object{fake.NAB(name)}},
		"while the policy's period is zero":    {period: off},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := fake.New(t, append(tt.objects, lookedInto(), broughtBack(name))...)
			w.Policy.BackupSyncPeriod = tt.period
			assert.Empty(t, writesOf(w, func() { assert.Zero(t, synchronizeNow(t, w)) }))
		})
	}
}

func TestOneRefusalKeepsNobodyWaiting(t *testing.T) {
	w := fake.New(t, lookedInto(), broughtBack("full"), broughtBack(name))
	w.Fail(func(verb string, object client.Object) error {
		if verb == "create" && object.GetName() == "full" {
			return apierrors.NewForbidden(oadpv1alpha1.Resource("nonadminbackups"), "full", nil)
		}
		return nil
	})
	assert.Equal(t, contract.SynchronizationResult{Made: 1, Refused: 1}, synchronizeNow(t, w))
}

func TestReleasingEntersWhatStays(t *testing.T) {
	entries := func(w *fake.World) map[string]released.Entry {
		ledger := released.Ledger{Client: w.Client, OADPNamespace: fake.OADPNamespace}
		found, err := ledger.Read(t.Context())
		require.NoError(t, err)
		return found
	}
	t.Run("by force, before the Velero Backup goes", func(t *testing.T) {
		w := created(t, velerov1.BackupPhaseCompleted)
		w.EditSpec(name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.ForceDeleteBackup = true })
		do(t, w, contract.MarkBackupDeleting.Name, contract.DeleteVeleroObjects.Name, contract.ReleaseBackup.Name)
		assert.Equal(t, released.ByForce, entries(w)[ours].Reason)
		assert.Nil(t, w.Read(name))
	})
	t.Run("not if the data are deleted", func(t *testing.T) {
		w := created(t, velerov1.BackupPhaseCompleted)
		w.EditSpec(name, deleteBackup)
		do(t, w, contract.MarkBackupDeleting.Name, contract.RequestDeletion.Name)
		w.AnswerRequests("")
		do(t, w, contract.ReleaseBackup.Name)
		assert.Nil(t, w.Read(name))
		assert.Empty(t, entries(w))
	})
	t.Run("while its Velero Backup is away", func(t *testing.T) {
		w := created(t, velerov1.BackupPhaseCompleted)
		w.Remove(w.Velero(ours))
		w.Remove(w.Read(name))
		do(t, w, contract.ReleaseBackup.Name)
		assert.Nil(t, w.Read(name))
		assert.Equal(t, released.ByRemoval, entries(w)[ours].Reason)
	})
	t.Run("not under another's name", func(t *testing.T) {
		forged := fake.NAB(name)
		forged.Labels = map[string]string{oadpv1alpha1.NabSyncLabel: victims}
		forged.Finalizers = []string{oadpv1alpha1.NabFinalizer}
		forged.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
		forged.Spec.ForceDeleteBackup = true
		w := fake.New(t, forged)
		do(t, w, contract.MarkBackupDeleting.Name, contract.DeleteVeleroObjects.Name, contract.ReleaseBackup.Name)
		assert.Nil(t, w.Read(name))
		assert.Empty(t, entries(w))
	})
	t.Run("the finalizer stays if it cannot be entered", func(t *testing.T) {
		w := created(t, velerov1.BackupPhaseCompleted)
		w.EditSpec(name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.ForceDeleteBackup = true })
		do(t, w, contract.MarkBackupDeleting.Name)
		w.Fail(func(_ string, object client.Object) error {
			if _, ok := object.(*corev1.ConfigMap); ok {
				return fake.ErrAway
			}
			return nil
		})
		_, err := run(t, w, contract.DeleteVeleroObjects.Name, contract.BackupStep{Ref: fake.Ref(name)})
		require.ErrorContains(t, err, fake.ErrAway.Error())
		assert.NotNil(t, w.Velero(ours))
	})
}

func collectNow(t *testing.T, w *fake.World) contract.CollectionResult {
	t.Helper()
	result, err := periodic[contract.CollectionResult](t, w, contract.CollectOrphans.Name, contract.CollectionInput{})
	require.NoError(t, err)
	return result
}

func TestOrphansAreCollected(t *testing.T) {
	copied := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), copied, fake.OADPNamespace, copied)}
	refused := broughtBack("refused")
	refused.Status = velerov1.BackupStatus{Phase: velerov1.BackupPhaseFailedValidation}
	data := broughtBack(name)
	w := fake.New(t, lookedInto(), secret, refused, data)
	assert.Equal(t, contract.CollectionResult{Deleted: []contract.CollectedKind{{Kind: "Secret", Count: 1}, {Kind: "Backup", Count: 1}}},
		collectNow(t, w))
	assert.NotNil(t, w.Velero(ours), "its data are the administrator's")
	assert.Empty(t, writesOf(w, func() { assert.Zero(t, collectNow(t, w)) }))
}

func TestNothingIsCollectedBeforeVeleroHasLooked(t *testing.T) {
	copied := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), copied, fake.OADPNamespace, copied)}
	fresh := lookedInto()
	fresh.Status.LastSyncedTime = nil
	w := fake.New(t, fresh, secret)
	assert.Equal(t, contract.CollectionResult{Waiting: "default"}, collectNow(t, w))
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
			w := fake.New(t, lookedInto(), secret.DeepCopy())
			w.FailReads(func(object runtime.Object) error {
				if _, ok := object.(*oadpv1alpha1.NonAdminBackupStorageLocation); ok {
					return answer
				}
				return nil
			})
			_, err := periodic[contract.CollectionResult](t, w, contract.CollectOrphans.Name, contract.CollectionInput{})
			require.Error(t, err)
			assert.NotNil(t, w.Copy("own"))
		})
	}
}

func TestWhatIsYoungIsLeft(t *testing.T) {
	copied := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), copied, fake.OADPNamespace, copied)}
	secret.CreationTimestamp = metav1.Now()
	w := fake.New(t, lookedInto(), secret)
	assert.Equal(t, contract.CollectionResult{Young: 1}, collectNow(t, w))
	assert.NotNil(t, w.Copy("own"))
}
