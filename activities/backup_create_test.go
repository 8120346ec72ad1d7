package activities_test

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

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
)

// The finalizer and the reference come first: whatever dies in between, no Velero Backup is left that nobody guards.
func TestAnAdmittedBackupIsCreated(t *testing.T) {
	w := fake.New(t, fake.NAB(name))
	w.Fail(func(verb string, object client.Object) error {
		if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "create" {
			nab := w.Read(name)
			assert.Contains(t, nab.Finalizers, oadpv1alpha1.NabFinalizer)
			assert.Equal(t, &oadpv1alpha1.VeleroBackup{NACUUID: ours, Name: ours, Namespace: fake.OADPNamespace}, nab.Status.VeleroBackup)
			assert.Equal(t, ours, object.GetName())
		}
		return nil
	})
	view := do(t, w, contract.AdmitBackup.Name)
	assert.True(t, view.Accepted && view.SpecJudged && view.Finalizer, "%+v", view)
	assert.Equal(t, "New", view.Phase)

	view = do(t, w, contract.CreateBackup.Name)
	assert.Equal(t, "Created", view.Phase)
	assert.True(t, view.Velero.Exists)
	assert.Equal(t, []string{
		"patch status NonAdminBackup", "patch NonAdminBackup", "create Backup", "patch status NonAdminBackup",
	}, w.Writes())
	assert.Equal(t, []string{fake.Namespace}, w.Velero(ours).Spec.IncludedNamespaces)
	assert.True(t, owner.Backup.Names(w.Velero(ours), fake.Namespace, name))
}

// What a rejected spec asks for is not made, and its object is not held back when it is deleted.
func TestARejectedObjectGetsNoFinalizer(t *testing.T) {
	nab := fake.NAB(name)
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"x"}
	w := fake.New(t, nab)
	view := do(t, w, contract.AdmitBackup.Name, contract.CreateBackup.Name)
	assert.True(t, backup.Settled(view))
	assert.Empty(t, w.Read(name).Finalizers)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, w.Read(name).Status.Phase)
	assert.Nil(t, w.Velero(ours))

	w.EditSpec(name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = nil })
	view = do(t, w, contract.AdmitBackup.Name, contract.CreateBackup.Name)
	assert.Equal(t, "Created", view.Phase, "once mended it goes straight on")
}

// An attempt that was lost sight of may have made the Velero Backup: it is adopted, never made twice.
func TestAVeleroBackupThatIsThereAlready(t *testing.T) {
	mine := func() *velerov1.Backup {
		return backup.NewVeleroBackup(fake.NAB(name), ours, fake.OADPNamespace, velerov1.BackupSpec{StorageLocation: "first"})
	}
	foreign, _ := veleroObjects(ours, "crew")
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
			w := fake.New(t, fake.NAB(name), test.there.DeepCopy())
			before := w.Velero(ours)
			view := do(t, w, contract.AdmitBackup.Name, contract.CreateBackup.Name)
			assert.Equal(t, string(test.wantPhase), view.Phase)
			assert.Equal(t, test.wantReason, accepted(w.Read(name)).Reason)
			assert.NotContains(t, w.Writes(), "create Backup")
			assert.Equal(t, before, w.Velero(ours), "it was touched")
		})
		t.Run(title+", made meanwhile", func(t *testing.T) {
			w := fake.New(t, fake.NAB(name))
			do(t, w, contract.AdmitBackup.Name)
			w.Fail(func(verb string, object client.Object) error {
				if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "create" {
					w.Fail(nil)
					return w.Client.Create(t.Context(), test.there.DeepCopy())
				}
				return nil
			})
			view := do(t, w, contract.CreateBackup.Name)
			assert.Equal(t, string(test.wantPhase), view.Phase)
			assert.Equal(t, test.wantReason, accepted(w.Read(name)).Reason)
			assert.Equal(t, test.there.Spec, w.Velero(ours).Spec)
			assert.Equal(t, test.there.Annotations, w.Velero(ours).Annotations)
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
			nab := fake.NAB(name)
			nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
			backup.ApplyVerdict(nab, backup.Verdict{Accepted: true, Reason: "BackupAccepted"}, "daily-1", fake.OADPNamespace)
			for _, claim := range claims {
				claim(nab)
			}
			w := fake.New(t, nab)
			do(t, w, contract.CreateBackup.Name)
			assert.Nil(t, w.Velero("daily-1"))
		})
	}
}

// A Backup that the object store brought back is adopted with its object: nothing is made, nothing judged.
func TestASyncedBackupIsAdopted(t *testing.T) {
	const synced = "team-nightly-11111111-58cc-4372-a567-0e02b2c3d479"
	velero := backup.NewVeleroBackup(fake.NAB(name), synced, fake.OADPNamespace, velerov1.BackupSpec{StorageLocation: "bsl"})
	velero.Status.Phase = velerov1.BackupPhaseCompleted
	nab := fake.NAB(name)
	labelNames(synced)(nab)
	w := fake.New(t, nab, velero)
	view := do(t, w, contract.AdmitBackup.Name)
	assert.True(t, backup.Settled(view), "%+v", view)
	assert.Equal(t, synced, w.Read(name).Status.VeleroBackup.Name)
	assert.Contains(t, w.Read(name).Finalizers, oadpv1alpha1.NabFinalizer)
	assert.Equal(t, []string{"patch status NonAdminBackup", "patch NonAdminBackup"}, w.Writes())
}

// An answer of the API server that no repetition changes becomes a condition; the workflow is not kept busy.
func TestAVeleroBackupThatIsRefused(t *testing.T) {
	final := map[string]error{
		"as invalid": errInvalid, "as a bad request": apierrors.NewBadRequest("no"), "as too large": errTooLarge,
		"because the namespace is being deleted": errTerminating,
	}
	for title, refusal := range final {
		t.Run("for good, "+title, func(t *testing.T) {
			w := refusing(t, refusal)
			view := do(t, w, contract.CreateBackup.Name)
			assert.True(t, backup.Settled(view), "%+v", view)
			nab := w.Read(name)
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
		"forbidden":              {errForbidden, contract.ErrorAccessDenied},
		"unauthorized":           {errUnauthorized, contract.ErrorAccessDenied},
		"a timeout":              {apierrors.NewServerTimeout(velerov1.Resource("backups"), "create", 1), contract.ErrorKubernetes},
		"too many requests":      {apierrors.NewTooManyRequests("slow down", 1), contract.ErrorKubernetes},
		"an internal error":      {apierrors.NewInternalError(errors.New("etcd")), contract.ErrorKubernetes},
		"no answer":              {fake.ErrAway, contract.ErrorKubernetes},
		"a kind not yet defined": {apierrors.NewNotFound(velerov1.Resource("backups"), ""), contract.ErrorKubernetes},
	}
	for title, test := range passing {
		t.Run("for now, "+title, func(t *testing.T) {
			w := refusing(t, test.err)
			before := w.Read(name)
			_, err := run(t, w, contract.CreateBackup.Name, contract.BackupStep{Ref: fake.Ref(name)})
			requireError(t, err, test.want, true)
			assert.Equal(t, before, w.Read(name), "nothing is told that may pass")
			w.Fail(nil)
			assert.Equal(t, "Created", do(t, w, contract.CreateBackup.Name).Phase)
		})
	}
}

// refusing returns a world with an admitted object whose Velero Backup cannot be made.
func refusing(t *testing.T, refusal error) *fake.World {
	t.Helper()
	w := fake.New(t, fake.NAB(name))
	do(t, w, contract.AdmitBackup.Name)
	w.Fail(func(verb string, object client.Object) error {
		if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "create" {
			return refusal
		}
		return nil
	})
	return w
}

// Between two activities the world goes on: what is no longer due is not done.
func TestWhatIsNoLongerDueIsNotCreated(t *testing.T) {
	tests := map[string]func(t *testing.T, w *fake.World){
		"the object was deleted": func(t *testing.T, w *fake.World) { remove(t, w, w.Read(name)) },
		"the spec was edited": func(_ *testing.T, w *fake.World) {
			w.EditSpec(name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = []string{"x"} })
		},
		"the finalizer was taken off": func(t *testing.T, w *fake.World) {
			nab := w.Read(name)
			nab.Finalizers = nil
			require.NoError(t, w.Client.Update(t.Context(), nab))
		},
		"the policy forbids it now": func(_ *testing.T, w *fake.World) {
			w.Policy = policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: new(false)}}
		},
	}
	for title, meanwhile := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			nab.Spec.BackupSpec.SnapshotVolumes = new(true)
			w := fake.New(t, nab)
			do(t, w, contract.AdmitBackup.Name)
			meanwhile(t, w)
			do(t, w, contract.CreateBackup.Name)
			assert.Nil(t, w.Velero(ours))
		})
	}
}

func TestAnUnusablePolicyAdmitsNothing(t *testing.T) {
	for _, activity := range []string{contract.AdmitBackup.Name, contract.CreateBackup.Name} {
		t.Run(activity, func(t *testing.T) {
			w := fake.New(t, fake.NAB(name))
			if activity == contract.CreateBackup.Name {
				do(t, w, contract.AdmitBackup.Name)
			}
			w.PolicyErr = &check.UnusableError{Origin: "ConfigMap openshift-adp/holdfast-policy", Err: errors.New("not YAML")}
			_, err := run(t, w, activity, contract.BackupStep{Ref: fake.Ref(name)})
			requireError(t, err, contract.ErrorPolicyUnusable, true)
			require.ErrorContains(t, err, "holdfast-policy")
			assert.Nil(t, w.Velero(ours))
			assert.NotEqual(t, oadpv1alpha1.NonAdminPhaseBackingOff, w.Read(name).Status.Phase, "it is no fault of the spec")

			w.PolicyErr = nil
			assert.Equal(t, "Created", do(t, w, contract.AdmitBackup.Name, contract.CreateBackup.Name).Phase)
		})
	}
}

func TestAForgedStatusIsCorrected(t *testing.T) {
	victim, _ := veleroObjects(victims, "crew")
	w := created(t, "Completed", victim)
	nab := w.Read(name)
	nab.Status.VeleroBackup.NACUUID, nab.Status.VeleroBackup.Name = victims, victims
	require.NoError(t, w.Client.Status().Update(t.Context(), nab))
	do(t, w, contract.RefreshBackup.Name)
	assert.Equal(t, ours, w.Read(name).Status.VeleroBackup.Name)
	assert.Contains(t, told(w), "Warning StatusCorrected status.veleroBackup named \""+victims+
		"\", which was not made for this NonAdminBackup; it was ignored and corrected")
}

// A backup that the other controller made, and that has expired, was made for the object: there is nothing to correct.
func TestALostBackupOfTheOtherControllerIsReportedAsLost(t *testing.T) {
	const byNAC = "team-nightly-11111111-58cc-4372-a567-0e02b2c3d479"
	nab := fake.NAB(name)
	statusNames(byNAC)(nab)
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	w := fake.New(t, nab)
	view := do(t, w, contract.RefreshBackup.Name)
	assert.True(t, view.AbsenceReported)
	assert.Equal(t, byNAC, w.Read(name).Status.VeleroBackup.Name)
	assert.Equal(t, []string{"Warning VeleroBackupNotFound its Velero Backup no longer exists"}, told(w))
}

func TestVolumesOfTheBackupAreCounted(t *testing.T) {
	meta := func(name, backup string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: fake.OADPNamespace, Name: name, Labels: map[string]string{velerov1.BackupNameLabel: backup},
		}
	}
	volumes := []client.Object{
		&velerov1.PodVolumeBackup{ObjectMeta: meta("p1", ours), Status: velerov1.PodVolumeBackupStatus{Phase: "Completed"}},
		&velerov1.PodVolumeBackup{ObjectMeta: meta("p2", ours), Status: velerov1.PodVolumeBackupStatus{Phase: "InProgress"}},
		&velerov1.PodVolumeBackup{ObjectMeta: meta("p3", victims), Status: velerov1.PodVolumeBackupStatus{Phase: "Failed"}},
		&velerov2alpha1.DataUpload{ObjectMeta: meta("d1", ours), Status: velerov2alpha1.DataUploadStatus{Phase: "Prepared"}},
		&velerov2alpha1.DataUpload{ObjectMeta: meta("d2", victims), Status: velerov2alpha1.DataUploadStatus{Phase: "Failed"}},
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
			nab := fake.NAB(name)
			nab.Spec.BackupSpec.SnapshotMoveData = test.moves
			w := fake.New(t, append(volumes, nab)...)
			do(t, w, contract.AdmitBackup.Name, contract.CreateBackup.Name, contract.RefreshBackup.Name)
			assert.Nil(t, w.Read(name).Status.FileSystemPodVolumeBackups, "Velero has not begun")

			w.SetVelero(ours, velerov1.BackupPhaseInProgress)
			count := func() {
				_, err := run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(name), Volumes: true})
				require.NoError(t, err)
			}
			count()
			assert.Equal(t, &oadpv1alpha1.FileSystemPodVolumeBackups{Total: 2, InProgress: 1, Completed: 1},
				w.Read(name).Status.FileSystemPodVolumeBackups)
			assert.Equal(t, test.wantUploads, w.Read(name).Status.DataMoverDataUploads)

			p2 := volumes[1].DeepCopyObject().(*velerov1.PodVolumeBackup)
			require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(p2), p2))
			p2.Status.Phase = velerov1.PodVolumeBackupPhaseCompleted
			require.NoError(t, w.Client.Update(t.Context(), p2))
			count()
			assert.Equal(t, 2, w.Read(name).Status.FileSystemPodVolumeBackups.Completed, "Velero's phase is the same")
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
			w := created(t, velerov1.BackupPhaseInProgress)
			nab := w.Read(name)
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
			_, err := run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(name), Volumes: test.volumes})
			require.NoError(t, err)
			assert.Equal(t, test.wantLists, lists)
		})
	}
}

// A copy of a large spec may be what makes the object too large: the status is worth more than the copy.
func TestAStatusTooLargeGoesWithoutTheCopyOfTheSpec(t *testing.T) {
	for title, refusal := range map[string]error{
		"by the API server": errTooLarge,
		"by etcd":           errors.New("etcdserver: request is too large"),
		"by etcd's client":  errors.New("rpc error: trying to send message larger than max (2097180 vs. 2097152)"),
	} {
		t.Run(title, func(t *testing.T) {
			w := created(t, "InProgress")
			w.SetVelero(ours, velerov1.BackupPhaseCompleted)
			w.Fail(func(_ string, object client.Object) error {
				if nab, is := object.(*oadpv1alpha1.NonAdminBackup); is && nab.Status.VeleroBackup.Spec != nil {
					return refusal
				}
				return nil
			})
			view := do(t, w, contract.RefreshBackup.Name)
			assert.True(t, backup.Settled(view), "%+v", view)
			assert.Nil(t, w.Read(name).Status.VeleroBackup.Spec)
			assert.Equal(t, velerov1.BackupPhaseCompleted, w.Read(name).Status.VeleroBackup.Status.Phase)
			assert.Empty(t, writesOf(w, func() { do(t, w, contract.RefreshBackup.Name) }), "and it is not tried for ever")
		})
	}
}
