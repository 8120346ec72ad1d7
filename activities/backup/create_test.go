package backup_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
	backupworkflow "holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestAVeleroBackupIsOfTheTenantsNamespaceAlone(t *testing.T) {
	w := activitytest.Created(t, "")
	assert.Equal(t, []string{fake.Namespace}, w.Velero(activitytest.Ours).Spec.IncludedNamespaces)
	assert.True(t, owner.Backup.Names(w.Velero(activitytest.Ours), fake.Namespace, activitytest.Name))
}

// What a rejected spec asks for is not made, and its object is not held back when it is deleted.
func TestARejectedObjectGetsNoFinalizer(t *testing.T) {
	nab := fake.NAB(activitytest.Name)
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"x"}
	w := fake.New(t, nab)
	view := activitytest.Do(t, w, contract.StartBackup.Name)
	assert.True(t, backupworkflow.Settled(view))
	assert.Empty(t, w.Read(activitytest.Name).Finalizers)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, w.Read(activitytest.Name).Status.Phase)
	assert.Nil(t, w.Velero(activitytest.Ours))

	w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = nil })
	view = activitytest.Do(t, w, contract.StartBackup.Name)
	assert.Equal(t, "Created", view.Phase, "once mended it goes straight on")
}

// An attempt that was lost sight of may have made the Velero Backup: it is adopted, never made twice.
func TestAVeleroBackupThatIsThereAlready(t *testing.T) {
	mine := func() *velerov1.Backup {
		return velero.NewBackup(fake.NAB(activitytest.Name), activitytest.Ours, fake.OADPNamespace, velerov1.BackupSpec{StorageLocation: "first"})
	}
	foreign, _ := veleroObjects(activitytest.Ours, "crew")
	tests := map[string]struct {
		there      *velerov1.Backup
		wantPhase  oadpv1alpha1.NonAdminPhase
		wantReason string
	}{
		"made by an attempt lost sight of": {mine(), "Created", "BackupAccepted"},
		"somebody else's":                  {foreign, "BackingOff", "VeleroBackupNotOwned"},
	}
	for title, test := range tests {
		t.Run(title+", since long", func(t *testing.T) {
			w := fake.New(t, fake.NAB(activitytest.Name), test.there.DeepCopy())
			before := w.Velero(activitytest.Ours)
			view := activitytest.Do(t, w, contract.StartBackup.Name)
			assert.Equal(t, string(test.wantPhase), view.Phase)
			assert.Equal(t, test.wantReason, accepted(w.Read(activitytest.Name)).Reason)
			assert.NotContains(t, w.Writes(), "create Backup")
			assert.Equal(t, before, w.Velero(activitytest.Ours), "it was touched")
		})
		t.Run(title+", made meanwhile", func(t *testing.T) {
			w := fake.New(t, fake.NAB(activitytest.Name))
			w.Fail(func(verb string, object client.Object) error {
				if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "create" {
					w.Fail(nil)
					return w.Client.Create(t.Context(), test.there.DeepCopy())
				}
				return nil
			})
			view := activitytest.Do(t, w, contract.StartBackup.Name)
			assert.Equal(t, string(test.wantPhase), view.Phase)
			assert.Equal(t, test.wantReason, accepted(w.Read(activitytest.Name)).Reason)
			assert.Equal(t, test.there.Spec, w.Velero(activitytest.Ours).Spec)
			assert.Equal(t, test.there.Annotations, w.Velero(activitytest.Ours).Annotations)
		})
	}
}

// Whatever a tenant writes into its status: no Velero Backup is made under a name of its choice.
func TestAForgedAcceptanceMakesNothing(t *testing.T) {
	for title, claims := range map[string][]func(*oadpv1alpha1.NonAdminBackup){
		"by label":            {labelNames("daily-1")},
		"by label and status": {labelNames("daily-1"), statusNames("daily-1")},
		"by status":           {statusNames("daily-1")},
	} {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(activitytest.Name)
			nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
			lifecycle.ApplyVerdict(nab, check.Verdict{Accepted: true, Reason: "BackupAccepted"}, "daily-1", fake.OADPNamespace)
			for _, claim := range claims {
				claim(nab)
			}
			w := fake.New(t, nab)
			activitytest.Do(t, w, contract.StartBackup.Name)
			assert.Nil(t, w.Velero("daily-1"))
		})
	}
}

// A Backup that the object store brought back is adopted with its object: nothing is made, nothing judged.
func TestASyncedBackupIsAdopted(t *testing.T) {
	const synced = "team-nightly-11111111-58cc-4372-a567-0e02b2c3d479"
	velero := velero.NewBackup(fake.NAB(activitytest.Name), synced, fake.OADPNamespace, velerov1.BackupSpec{StorageLocation: "bsl"})
	velero.Status.Phase = velerov1.BackupPhaseCompleted
	nab := fake.NAB(activitytest.Name)
	labelNames(synced)(nab)
	w := fake.New(t, nab, velero)
	view := activitytest.Do(t, w, contract.AdmitBackup.Name)
	assert.True(t, backupworkflow.Settled(view), "%+v", view)
	assert.Equal(t, synced, w.Read(activitytest.Name).Status.VeleroBackup.Name)
	assert.Contains(t, w.Read(activitytest.Name).Finalizers, oadpv1alpha1.NabFinalizer)
	assert.Equal(t, []string{"patch status NonAdminBackup", "patch NonAdminBackup"}, w.Writes())
}

// An answer of the API server that no repetition changes becomes a condition; the workflow is not kept busy.
func TestAVeleroBackupThatIsRefused(t *testing.T) {
	final := map[string]error{
		"as invalid": errInvalid, "as a bad request": apierrors.NewBadRequest("no"), "as too large": activitytest.ErrTooLarge,
		"because the namespace is being deleted": activitytest.ErrTerminating,
	}
	for title, refusal := range final {
		t.Run("for good, "+title, func(t *testing.T) {
			w := refusing(t, refusal)
			view := activitytest.Do(t, w, contract.StartBackup.Name)
			assert.True(t, backupworkflow.Settled(view), "%+v", view)
			nab := w.Read(activitytest.Name)
			assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, nab.Status.Phase)
			assert.Equal(t, "VeleroBackupRefused", accepted(nab).Reason)
			assert.Contains(t, accepted(nab).Message, "the Velero Backup could not be created from this spec: ")
			assert.Contains(t, accepted(nab).Message, refusal.Error())
		})
	}
	passing := map[string]struct {
		err  error
		want string
	}{
		"forbidden":              {activitytest.ErrForbidden, contract.ErrorAccessDenied},
		"unauthorized":           {activitytest.ErrUnauthorized, contract.ErrorAccessDenied},
		"a timeout":              {apierrors.NewServerTimeout(velerov1.Resource("backups"), "create", 1), contract.ErrorKubernetes},
		"too many requests":      {apierrors.NewTooManyRequests("slow down", 1), contract.ErrorKubernetes},
		"an internal error":      {apierrors.NewInternalError(errors.New("etcd")), contract.ErrorKubernetes},
		"no answer":              {fake.ErrAway, contract.ErrorKubernetes},
		"a kind not yet defined": {apierrors.NewNotFound(velerov1.Resource("backups"), ""), contract.ErrorKubernetes},
	}
	for title, test := range passing {
		t.Run("for now, "+title, func(t *testing.T) {
			w := refusing(t, test.err)
			_, err := activitytest.Run(t, w, contract.StartBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
			activitytest.RequireError(t, err, test.want, true)
			nab := w.Read(activitytest.Name)
			assert.Equal(t, oadpv1alpha1.NonAdminPhaseNew, nab.Status.Phase, "the cause may pass")
			assert.Equal(t, "BackupAccepted", accepted(nab).Reason)
			w.Fail(nil)
			assert.Equal(t, "Created", activitytest.Do(t, w, contract.StartBackup.Name).Phase)
		})
	}
}

// refusing returns a world in which no Velero Backup can be made.
func refusing(t *testing.T, refusal error) *fake.World {
	t.Helper()
	w := fake.New(t, fake.NAB(activitytest.Name))
	w.Fail(func(verb string, object client.Object) error {
		if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "create" {
			return refusal
		}
		return nil
	})
	return w
}

// Between reading and writing the world goes on: what is no longer due is not created.
func TestWhatIsNoLongerDueIsNotCreated(t *testing.T) {
	tests := map[string]func(t *testing.T, w *fake.World){
		"the object was deleted": func(_ *testing.T, w *fake.World) { w.Remove(w.Read(activitytest.Name)) },
		"the spec was edited": func(_ *testing.T, w *fake.World) {
			w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = []string{"x"} })
		},
	}
	for title, meanwhile := range tests {
		t.Run(title, func(t *testing.T) {
			w := fake.New(t, fake.NAB(activitytest.Name))
			w.Fail(func(string, client.Object) error { // the finalizer's patch
				w.Fail(nil)
				meanwhile(t, w)
				return nil
			})
			activitytest.Do(t, w, contract.StartBackup.Name)
			assert.Nil(t, w.Velero(activitytest.Ours))
		})
	}
}

func TestAnUnusablePolicyAdmitsNothing(t *testing.T) {
	w := fake.New(t, fake.NAB(activitytest.Name))
	w.PolicyErr = &check.UnusableError{Origin: "ConfigMap openshift-adp/holdfast-policy", Err: errors.New("not YAML")}
	_, err := activitytest.Run(t, w, contract.StartBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
	activitytest.RequireError(t, err, contract.ErrorPolicyUnusable, true)
	require.ErrorContains(t, err, "holdfast-policy")
	assert.Nil(t, w.Velero(activitytest.Ours))
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseNew, w.Read(activitytest.Name).Status.Phase, "it is no fault of the spec")

	w.PolicyErr = nil
	assert.Equal(t, "Created", activitytest.Do(t, w, contract.StartBackup.Name).Phase)
}

func TestAForgedStatusIsCorrected(t *testing.T) {
	victim, _ := veleroObjects(activitytest.Victims, "crew")
	w := activitytest.Created(t, "Completed", victim)
	nab := w.Read(activitytest.Name)
	nab.Status.VeleroBackup.NACUUID, nab.Status.VeleroBackup.Name = activitytest.Victims, activitytest.Victims
	require.NoError(t, w.Client.Status().Update(t.Context(), nab))
	activitytest.Do(t, w, contract.RefreshBackup.Name)
	assert.Equal(t, activitytest.Ours, w.Read(activitytest.Name).Status.VeleroBackup.Name)
	assert.Contains(t, activitytest.Events(w), "Warning StatusCorrected status.veleroBackup named \""+activitytest.Victims+
		"\", which was not made for this NonAdminBackup; it was ignored and corrected")
}

// A backup that the other controller made, and that has expired, was made for the object: there is nothing to correct.
func TestALostBackupOfTheOtherControllerIsReportedAsLost(t *testing.T) {
	const byNAC = "team-nightly-11111111-58cc-4372-a567-0e02b2c3d479"
	nab := fake.NAB(activitytest.Name)
	statusNames(byNAC)(nab)
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	w := fake.New(t, nab)
	view := activitytest.Do(t, w, contract.RefreshBackup.Name)
	assert.True(t, view.AbsenceReported)
	assert.Equal(t, byNAC, w.Read(activitytest.Name).Status.VeleroBackup.Name)
	assert.Equal(t, []string{"Warning VeleroBackupNotFound its Velero Backup no longer exists"}, activitytest.Events(w))
}

func TestVolumesOfTheBackupAreCounted(t *testing.T) {
	meta := func(name, backup string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: fake.OADPNamespace, Name: name, Labels: map[string]string{velerov1.BackupNameLabel: backup},
		}
	}
	volumes := []client.Object{
		&velerov1.PodVolumeBackup{ObjectMeta: meta("p1", activitytest.Ours), Status: velerov1.PodVolumeBackupStatus{Phase: "Completed"}},
		&velerov1.PodVolumeBackup{ObjectMeta: meta("p2", activitytest.Ours), Status: velerov1.PodVolumeBackupStatus{Phase: "InProgress"}},
		&velerov1.PodVolumeBackup{ObjectMeta: meta("p3", activitytest.Victims), Status: velerov1.PodVolumeBackupStatus{Phase: "Failed"}},
		&velerov2alpha1.DataUpload{ObjectMeta: meta("d1", activitytest.Ours), Status: velerov2alpha1.DataUploadStatus{Phase: "Prepared"}},
		&velerov2alpha1.DataUpload{ObjectMeta: meta("d2", activitytest.Victims), Status: velerov2alpha1.DataUploadStatus{Phase: "Failed"}},
	}
	tests := map[string]struct {
		moves       *bool
		wantUploads *oadpv1alpha1.DataMoverDataUploads
	}{
		"snapshots stay where they are": {nil, nil},
		"snapshots are moved":           {new(true), &oadpv1alpha1.DataMoverDataUploads{Total: 1, Prepared: 1}},
		"snapshots are not to be moved": {new(false), nil},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(activitytest.Name)
			nab.Spec.BackupSpec.SnapshotMoveData = test.moves
			w := fake.New(t, append(volumes, nab)...)
			activitytest.Do(t, w, contract.StartBackup.Name, contract.RefreshBackup.Name)
			assert.Nil(t, w.Read(activitytest.Name).Status.FileSystemPodVolumeBackups, "Velero has not begun")

			w.SetVelero(activitytest.Ours, velerov1.BackupPhaseInProgress)
			count := func() {
				_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name), Volumes: true})
				require.NoError(t, err)
			}
			count()
			assert.Equal(t, &oadpv1alpha1.FileSystemPodVolumeBackups{Total: 2, InProgress: 1, Completed: 1},
				w.Read(activitytest.Name).Status.FileSystemPodVolumeBackups)
			assert.Equal(t, test.wantUploads, w.Read(activitytest.Name).Status.DataMoverDataUploads)

			p2 := volumes[1].DeepCopyObject().(*velerov1.PodVolumeBackup)
			require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(p2), p2))
			p2.Status.Phase = velerov1.PodVolumeBackupPhaseCompleted
			require.NoError(t, w.Client.Update(t.Context(), p2))
			count()
			assert.Equal(t, 2, w.Read(activitytest.Name).Status.FileSystemPodVolumeBackups.Completed, "Velero's phase is the same")

			p2.Status.Phase = velerov1.PodVolumeBackupPhaseCanceled
			require.NoError(t, w.Client.Update(t.Context(), p2))
			w.SetVelero(activitytest.Ours, "Cancelled")
			count()
			assert.Equal(t, 1, w.Read(activitytest.Name).Status.FileSystemPodVolumeBackups.Failed, "the volume is not in the backup")
		})
	}
}

// Lists cost the API server most: there is none where nobody has seen a volume, or none can move any more.
func TestVolumesAreListedOnlyWhereThereAreAny(t *testing.T) {
	done := &oadpv1alpha1.FileSystemPodVolumeBackups{Total: 2, Completed: 1, Failed: 1}
	tests := map[string]struct {
		volumes   bool
		mirrored  velerov1.BackupPhase
		counted   *oadpv1alpha1.FileSystemPodVolumeBackups
		wantLists int
	}{
		"no volumes, new phase":     {false, "New", nil, 0},
		"volumes, new phase":        {true, "New", done, 1},
		"volumes, never counted":    {true, "InProgress", nil, 1},
		"volumes, some not done":    {true, "InProgress", &oadpv1alpha1.FileSystemPodVolumeBackups{Total: 2, Completed: 1}, 1},
		"volumes, all of them done": {true, "InProgress", done, 0},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := activitytest.Created(t, velerov1.BackupPhaseInProgress)
			nab := w.Read(activitytest.Name)
			nab.Status.VeleroBackup.Status.Phase = test.mirrored
			nab.Status.FileSystemPodVolumeBackups = test.counted
			require.NoError(t, w.Client.Status().Update(t.Context(), nab))
			lists := 0
			w.FailReads(func(object runtime.Object) error {
				if _, is := object.(*velerov1.PodVolumeBackupList); is {
					lists++
				}
				return nil
			})
			_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name), Volumes: test.volumes})
			require.NoError(t, err)
			assert.Equal(t, test.wantLists, lists)
		})
	}
}

// A copy of a large spec may be what makes the object too large: the status is worth more than the copy.
func TestAStatusTooLargeGoesWithoutTheCopyOfTheSpec(t *testing.T) {
	for title, refusal := range map[string]error{
		"by the API server": activitytest.ErrTooLarge,
		"by etcd":           errors.New("etcdserver: request is too large"),
		"by etcd's client":  errors.New("rpc error: trying to send message larger than max (2097180 vs. 2097152)"),
	} {
		t.Run(title, func(t *testing.T) {
			w := activitytest.Created(t, "InProgress")
			w.SetVelero(activitytest.Ours, velerov1.BackupPhaseCompleted)
			w.Fail(func(_ string, object client.Object) error {
				if nab, is := object.(*oadpv1alpha1.NonAdminBackup); is && nab.Status.VeleroBackup.Spec != nil {
					return refusal
				}
				return nil
			})
			view := activitytest.Do(t, w, contract.RefreshBackup.Name)
			assert.True(t, backupworkflow.Settled(view), "%+v", view)
			assert.Nil(t, w.Read(activitytest.Name).Status.VeleroBackup.Spec)
			assert.Equal(t, velerov1.BackupPhaseCompleted, w.Read(activitytest.Name).Status.VeleroBackup.Status.Phase)
			assert.Empty(t, activitytest.WritesOf(w, func() { activitytest.Do(t, w, contract.RefreshBackup.Name) }), "and it is not tried for ever")
		})
	}
}
