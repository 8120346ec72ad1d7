package backup_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// stored is a new backup that goes to the tenant's own location, and that location.
func stored() []client.Object {
	const location = "team-store-3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	nab, store := fake.NAB(activitytest.Name), fake.NaBSL("store")
	nab.Spec.BackupSpec.StorageLocation = store.Name
	store.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	store.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: location}
	made := fake.VeleroLocation(location, fake.Namespace)
	return []client.Object{nab, store, made}
}

// Every request counts: each object is read once when a backup starts and once when it has ended, and the status is written once
// at either.
func TestABackupTakesFewRequests(t *testing.T) {
	for title, test := range map[string]struct {
		there            []client.Object
		toStart, toEnded []string
	}{
		"in the default location": {
			[]client.Object{fake.NAB(activitytest.Name)}, []string{"*v1alpha1.NonAdminBackup"}, []string{"*v1alpha1.NonAdminBackup", "*v1.Backup"},
		},
		"in a location of its own": {
			stored(),
			[]string{"*v1alpha1.NonAdminBackup", "*v1alpha1.NonAdminBackupStorageLocation", "*v1.BackupStorageLocation"},
			[]string{"*v1alpha1.NonAdminBackup", "*v1.Backup", "*v1.BackupStorageLocation"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			w := fake.New(t, test.there...)
			reads := func() []string {
				var read []string
				w.FailReads(func(object runtime.Object) error {
					read = append(read, fmt.Sprintf("%T", object))
					return nil
				})
				defer w.FailReads(nil)
				activitytest.Do(t, w, contract.RefreshBackup.Name)
				return read
			}
			assert.Equal(t, []string{"patch NonAdminBackup", "create Backup", "patch status NonAdminBackup"}, activitytest.WritesOf(w, func() {
				assert.Equal(t, test.toStart, reads())
			}))
			assert.Len(t, activitytest.Events(w), 1)
			assert.Equal(t, "Created", string(w.Read(activitytest.Name).Status.Phase))
			w.SetVelero(activitytest.Ours, velerov1.BackupPhaseCompleted)
			assert.Equal(t, []string{"patch status NonAdminBackup"}, activitytest.WritesOf(w, func() {
				assert.Equal(t, test.toEnded, reads())
			}))
			assert.Len(t, activitytest.Events(w), 1)
		})
	}
}

// Whatever dies in between, no Velero Backup is left that nobody guards.
func TestTheFinalizerComesBeforeTheVeleroBackup(t *testing.T) {
	for _, activity := range []string{contract.RefreshBackup.Name, contract.StartBackup.Name} {
		t.Run(activity, func(t *testing.T) {
			w := fake.New(t, fake.NAB(activitytest.Name))
			w.Fail(func(verb string, object client.Object) error {
				if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "create" {
					assert.Contains(t, w.Read(activitytest.Name).Finalizers, oadpv1alpha1.NabFinalizer)
					assert.Equal(t, activitytest.Ours, object.GetName())
				}
				return nil
			})
			view := activitytest.Do(t, w, activity)
			assert.True(t, view.Accepted && view.SpecValidated && view.Finalizer && view.EverCreated && view.Velero.Exists, "%+v", view)
			nab := w.Read(activitytest.Name)
			assert.Equal(t, "BackupAccepted", accepted(nab).Reason)
			assert.Equal(t, activitytest.Ours, nab.Status.VeleroBackup.Name)
			assert.Equal(t, []string{"Normal VeleroBackupCreated created Velero Backup " + activitytest.Ours}, activitytest.Events(w))
		})
	}
}

// A process may die, or lose an answer, at every write: what comes next ends the same, with one Velero Backup.
func TestAStartThatBreaksOffIsGoneOnWith(t *testing.T) {
	undisturbed := fake.New(t, fake.NAB(activitytest.Name))
	want := activitytest.Do(t, undisturbed, contract.RefreshBackup.Name)
	writes := len(undisturbed.Writes())
	require.Equal(t, 3, writes)
	for at := range writes {
		for _, after := range []bool{false, true} {
			for _, next := range []string{contract.RefreshBackup.Name, contract.StartBackup.Name} {
				w := fake.New(t, fake.NAB(activitytest.Name))
				done := 0
				dies := func(string, client.Object) error {
					if done++; done > at {
						return fake.ErrAway
					}
					return nil
				}
				if after {
					w.Lose(dies)
				} else {
					w.Fail(dies)
				}
				_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
				require.Error(t, err)
				w.Lose(nil)
				w.Fail(nil)
				// As the workflow goes on: what has been said of the object by then may call for a step of its own.
				assert.Equal(t, want, activitytest.Do(t, w, next, contract.StartBackup.Name), "write %d, done %t, then %s", at+1, after, next)
				assert.Equal(t, undisturbed.Velero(activitytest.Ours).Spec, w.Velero(activitytest.Ours).Spec)
				assert.Equal(t, "BackupAccepted", accepted(w.Read(activitytest.Name)).Reason)
			}
		}
	}
}

// While the Velero Backup cannot be made the tenant reads that the spec is accepted.
func TestAnAcceptedSpecIsToldWhileTheVeleroBackupCannotBeMade(t *testing.T) {
	w := fake.New(t, fake.NAB(activitytest.Name))
	w.Fail(func(verb string, object client.Object) error {
		if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "create" {
			return activitytest.ErrForbidden
		}
		return nil
	})
	_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
	activitytest.RequireError(t, err, contract.ErrorAccessDenied, true)
	nab := w.Read(activitytest.Name)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseNew, nab.Status.Phase)
	assert.Equal(t, "BackupAccepted", accepted(nab).Reason)
	assert.Empty(t, activitytest.Events(w))
}

// The Velero Backup of a new object is not looked for: that it is there is found when it is made, or when nothing is to be made.
func TestAnObjectThatLooksNewMayHaveAVeleroBackup(t *testing.T) {
	mine := velero.NewBackup(fake.NAB(activitytest.Name), activitytest.Ours, fake.OADPNamespace, velerov1.BackupSpec{StorageLocation: "first"})
	foreign, _ := veleroObjects(activitytest.Ours, "crew")
	for title, test := range map[string]struct {
		there     *velerov1.Backup
		invalid   bool
		wantPhase oadpv1alpha1.NonAdminPhase
		want      string
	}{
		"its own":                              {mine, false, "Created", "BackupAccepted"},
		"its own, and its spec is invalid":     {mine, true, "Created", "InvalidBackupSpec"},
		"another's":                            {foreign, false, "BackingOff", "VeleroBackupNotOwned"},
		"another's, and its spec is invalid":   {foreign, true, "BackingOff", "VeleroBackupNotOwned"},
		"none, and its spec is invalid anyway": {nil, true, "BackingOff", "InvalidBackupSpec"},
	} {
		for _, activity := range []string{contract.RefreshBackup.Name, contract.StartBackup.Name} {
			t.Run(title+", "+activity, func(t *testing.T) {
				nab := fake.NAB(activitytest.Name)
				if test.invalid {
					nab.Spec.BackupSpec.ExcludedNamespaces = []string{"x"}
				}
				w := fake.New(t, nab)
				if test.there != nil {
					require.NoError(t, w.Client.Create(t.Context(), test.there.DeepCopy()))
				}
				before, made := w.Velero(activitytest.Ours), len(w.Writes())
				view := activitytest.Do(t, w, activity)
				nab = w.Read(activitytest.Name)
				assert.Equal(t, string(test.wantPhase), view.Phase)
				assert.Equal(t, test.want, accepted(nab).Reason)
				assert.Equal(t, before, w.Velero(activitytest.Ours), "it was touched")
				assert.NotContains(t, w.Writes()[made:], "create Backup")
				mirrored := nab.Status.VeleroBackup != nil && nab.Status.VeleroBackup.Spec != nil
				assert.Equal(t, test.there == mine, mirrored, "nothing of another's is shown")
			})
		}
	}
}

// A Velero Backup is built by the rules that its spec was judged by; one that was refused has none.
func TestOnlyAnAcceptedSpecHasRulesToBuildBy(t *testing.T) {
	for _, location := range []string{"", "not-there"} {
		w := fake.New(t, fake.NAB(activitytest.Name))
		w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.StorageLocation = location })
		objects, err := w.Backups.Gatherer.Gather(t.Context(), fake.Ref(activitytest.Name))
		require.NoError(t, err)
		objects.Rules = nil
		verdict, err := w.Backups.Gatherer.Judge(t.Context(), objects)
		require.NoError(t, err)
		assert.Equal(t, location == "", verdict.Accepted, verdict.Message)
		assert.Equal(t, verdict.Accepted, objects.Rules != nil)
	}
}
