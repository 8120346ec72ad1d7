package backup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmware-tanzu/velero/pkg/apis/velero/shared"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/usage"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/quota"
	backupworkflow "holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

var created = time.Now().Add(-time.Hour).Truncate(time.Second)

// aged is a NonAdminBackup that was created so many seconds after the others.
func aged(name string, seconds int) *oadpv1alpha1.NonAdminBackup {
	nab := fake.NAB(name)
	nab.CreationTimestamp = metav1.NewTime(created.Add(time.Duration(seconds) * time.Second))
	return nab
}

func limited(t *testing.T, limits quota.Limits, objects ...client.Object) *fake.World {
	t.Helper()
	w := fake.New(t, objects...)
	w.Policy.Quotas = []policy.Quota{{NamespaceSelector: &metav1.LabelSelector{}, Limits: limits}}
	return w
}

func serve(t *testing.T, w *fake.World, name string) contract.BackupView {
	t.Helper()
	view, err := activitytest.Run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(name)})
	require.NoError(t, err)
	if view.Phase == "BackingOff" && !backupworkflow.Settled(view) { // as its workflow goes on
		view, err = activitytest.Run(t, w, contract.StartBackup.Name, contract.BackupStep{Ref: fake.Ref(name)})
		require.NoError(t, err)
	}
	return view
}

// requireWaits requires that a backup is BackingOff by its quota, settled, and leaves nothing that would count.
func requireWaits(t *testing.T, w *fake.World, name string, view contract.BackupView) {
	t.Helper()
	assert.True(t, backupworkflow.Settled(view), "%+v", view)
	nab := w.Read(name)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, nab.Status.Phase)
	assert.Equal(t, oadpv1alpha1.ReasonQuotaExceeded, accepted(nab).Reason)
	assert.Empty(t, nab.Finalizers)
	assert.True(t, usage.Counted(nab, fake.Cluster).Waits)
	assert.Nil(t, w.Velero(fake.VeleroName(name)))
}

func TestABackupBeyondTheQuotaWaitsAndIsThenMadeByItself(t *testing.T) {
	w := limited(t, quota.Limits{MaxStored: 1}, aged("first", 0), aged("second", 1), aged("third", 2))
	assert.True(t, serve(t, w, "first").EverCreated)
	activitytest.Events(w)
	writes := activitytest.WritesOf(w, func() { requireWaits(t, w, "second", serve(t, w, "second")) })
	assert.Equal(t, []string{"patch status NonAdminBackup"}, writes, "no finalizer, no Velero Backup")
	message := "This namespace has 1 of at most 1 stored backups (maxStored). Delete one, or let one expire; this backup is then made automatically."
	assert.Equal(t, message, accepted(w.Read("second")).Message)
	assert.Equal(t, []string{"Warning QuotaExceeded " + message}, activitytest.Events(w))
	requireWaits(t, w, "third", serve(t, w, "third"))
	assert.Empty(t, activitytest.WritesOf(w, func() { serve(t, w, "third") }), "judged again, it is the same")

	first := w.Read("first")
	first.Finalizers = nil
	require.NoError(t, w.Client.Update(t.Context(), first))
	require.NoError(t, w.Client.Delete(t.Context(), first))
	assert.Empty(t, activitytest.WritesOf(w, func() { requireWaits(t, w, "third", serve(t, w, "third")) }), "the place is the second's")
	activitytest.Events(w)
	assert.True(t, serve(t, w, "second").EverCreated)
	assert.Equal(t, "Created", string(w.Read("second").Status.Phase))
	assert.Len(t, activitytest.Events(w), 2, "accepted, and created")
	requireWaits(t, w, "third", serve(t, w, "third"))
}

func TestAnUnfinishedBackupEndsAndTheNextIsMade(t *testing.T) {
	w := limited(t, quota.Limits{MaxActive: 1}, aged("first", 0), aged("second", 1))
	serve(t, w, "first")
	requireWaits(t, w, "second", serve(t, w, "second"))
	w.SetVelero(fake.VeleroName("first"), velerov1.BackupPhasePartiallyFailed)
	serve(t, w, "first")
	assert.True(t, serve(t, w, "second").EverCreated)
}

// The order of their creation decides, whichever is judged first; one that is refused for another reason holds nobody up.
func TestAnOlderBackupHasTheLastPlace(t *testing.T) {
	w := limited(t, quota.Limits{MaxStored: 1}, aged("older", 0), aged("younger", 1))
	requireWaits(t, w, "younger", serve(t, w, "younger"))
	w.EditSpec("older", func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = []string{"x"} })
	assert.False(t, serve(t, w, "older").Accepted)
	assert.True(t, serve(t, w, "younger").EverCreated)
	w.EditSpec("older", func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = nil })
	requireWaits(t, w, "older", serve(t, w, "older"))
}

// Two workers judge two backups at the same time. The other one, of the same second and first by name, comes at each write.
func TestTwoThatAreJudgedAtOnceAreNotBothMade(t *testing.T) {
	for at, writes := range []string{"before the finalizer", "before the Velero Backup", "before the status"} {
		t.Run(writes, func(t *testing.T) {
			w := limited(t, quota.Limits{MaxStored: 1}, aged("z", 0))
			done := 0
			w.Fail(func(string, client.Object) error {
				if done++; done == at+1 {
					w.Fail(nil)
					require.NoError(t, w.Client.Create(t.Context(), aged("a", 0)))
					serve(t, w, "a")
				}
				return nil
			})
			serve(t, w, "z")
			made := 0
			for _, name := range []string{"z", "a"} {
				if w.Velero(fake.VeleroName(name)) != nil {
					made++
				} else {
					requireWaits(t, w, name, serve(t, w, name))
				}
			}
			assert.Equal(t, 1, made)
		})
	}
}

func TestABackupThatWasAdmittedIsNeverRefusedByAQuota(t *testing.T) {
	none := quota.Limits{MaxStored: 1}
	filled := func(t *testing.T) *fake.World {
		t.Helper()
		w := limited(t, quota.Limits{}, aged("first", 0), aged("second", 1), aged(activitytest.Name, 2))
		serve(t, w, "first")
		serve(t, w, "second")
		return w
	}
	t.Run("its Velero Backup exists", func(t *testing.T) {
		w := filled(t)
		serve(t, w, activitytest.Name)
		w.Policy.Quotas[0].Limits = none
		assert.True(t, activitytest.Do(t, w, contract.RefreshBackup.Name, contract.AdmitBackup.Name).Accepted)
	})
	t.Run("somebody has removed its status and its finalizer", func(t *testing.T) {
		w := filled(t)
		serve(t, w, activitytest.Name)
		nab := w.Read(activitytest.Name)
		nab.Finalizers, nab.Status = nil, oadpv1alpha1.NonAdminBackupStatus{}
		require.NoError(t, w.Client.Status().Update(t.Context(), nab))
		nab.Finalizers = nil
		require.NoError(t, w.Client.Update(t.Context(), nab))
		w.Policy.Quotas[0].Limits = none
		assert.True(t, serve(t, w, activitytest.Name).EverCreated)
	})
	t.Run("it was accepted, and the Velero Backup could not be created yet", func(t *testing.T) {
		w := filled(t)
		w.Fail(func(_ string, object client.Object) error {
			if _, is := object.(*velerov1.Backup); is {
				return fake.ErrAway
			}
			return nil
		})
		_, err := activitytest.Run(t, w, contract.StartBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
		require.Error(t, err)
		w.Fail(nil)
		w.Policy.Quotas[0].Limits = none
		assert.True(t, activitytest.Do(t, w, contract.StartBackup.Name).EverCreated)
	})
}

// A process may die, or lose an answer, at every write.
func TestAStartUnderAQuotaThatBreaksOffIsGoneOnWith(t *testing.T) {
	for at := range 3 {
		for _, after := range []bool{false, true} {
			w := limited(t, quota.Limits{MaxStored: 1}, aged(activitytest.Name, 0), aged("younger", 1))
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
			requireWaits(t, w, "younger", serve(t, w, "younger"))
			assert.True(t, activitytest.Do(t, w, contract.RefreshBackup.Name, contract.StartBackup.Name).EverCreated, "write %d, done %t", at+1, after)
		}
	}
}

func TestADayIsAnyTwentyFourHours(t *testing.T) {
	w := limited(t, quota.Limits{MaxPerDay: 1}, aged("first", 0), aged("second", 1))
	serve(t, w, "first")
	requireWaits(t, w, "second", serve(t, w, "second"))
	first := w.Read("first")
	for i := range first.Status.Conditions {
		first.Status.Conditions[i].LastTransitionTime = metav1.NewTime(created.Add(-quota.Day))
	}
	made := created.Add(-23 * time.Hour)
	require.NoError(t, w.Client.Status().Update(t.Context(), first))
	assert.True(t, serve(t, w, "second").EverCreated, "more than a day has passed")

	w = limited(t, quota.Limits{MaxPerDay: 1}, aged("first", 0), aged("second", 1))
	serve(t, w, "first")
	first = w.Read("first")
	for i := range first.Status.Conditions {
		first.Status.Conditions[i].LastTransitionTime = metav1.NewTime(made.Add(2 * time.Hour))
	}
	require.NoError(t, w.Client.Status().Update(t.Context(), first))
	serve(t, w, "second")
	assert.Contains(t, accepted(w.Read("second")).Message,
		"1 of at most 1 backups a day (maxPerDay); the next may begin at "+made.Add(26*time.Hour).UTC().Format(time.RFC3339))
}

// Bytes are those of the namespace's own backups, whatever else Velero holds.
func TestTheBytesOfANamespaceAreThoseOfItsOwnBackups(t *testing.T) {
	const size = 4 << 30
	volume := func(name, namespace, of string) client.Object {
		return &velerov1.PodVolumeBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: name, Labels: map[string]string{velerov1.BackupNameLabel: of}},
			Spec:       velerov1.PodVolumeBackupSpec{Pod: corev1.ObjectReference{Namespace: namespace}},
			Status:     velerov1.PodVolumeBackupStatus{Progress: shared.DataMoveOperationProgress{TotalBytes: size}},
		}
	}
	moved := &velerov2alpha1.DataUpload{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "moved", Labels: map[string]string{velerov1.BackupNameLabel: fake.VeleroName("first")}},
		Spec:       velerov2alpha1.DataUploadSpec{SourceNamespace: fake.Namespace},
		Status:     velerov2alpha1.DataUploadStatus{Progress: shared.DataMoveOperationProgress{TotalBytes: size}},
	}
	w := limited(t, quota.Limits{MaxBytes: resource.MustParse("9Gi")}, aged("first", 0), aged("second", 1), aged("third", 2), moved,
		volume("own", fake.Namespace, fake.VeleroName("first")), volume("others", "crew", activitytest.Victims),
		volume("administrators", fake.Namespace, "whole-cluster"), volume("forged", "crew", fake.VeleroName("first")))
	serve(t, w, "first")
	assert.True(t, serve(t, w, "second").EverCreated, "8 of 9 GiB")
	require.NoError(t, w.Client.Create(t.Context(), volume("more", fake.Namespace, fake.VeleroName("second"))))
	requireWaits(t, w, "third", serve(t, w, "third"))
	assert.Contains(t, accepted(w.Read("third")).Message, "hold 12Gi of at most 9Gi (maxBytes)")
}

// What a quota costs is read only where there is one that limits the namespace.
func TestAQuotaReadsOnlyWhereItLimits(t *testing.T) {
	const nab, namespace = "*v1alpha1.NonAdminBackup", "*v1.PartialObjectMetadata"
	const backups, volumes, uploads = "*v1alpha1.NonAdminBackupList", "*v1.PodVolumeBackupList", "*v2alpha1.DataUploadList"
	other := policy.Quota{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, Limits: quota.Limits{MaxStored: 1}}
	all := func(limits quota.Limits) policy.Quota {
		return policy.Quota{NamespaceSelector: &metav1.LabelSelector{}, Limits: limits}
	}
	for title, test := range map[string]struct {
		quotas []policy.Quota
		want   []string
	}{
		"none":                {want: []string{nab}},
		"of other ones":       {[]policy.Quota{other}, []string{nab, namespace}},
		"that limits nothing": {[]policy.Quota{other, all(quota.Limits{})}, []string{nab, namespace}},
		"of numbers":          {[]policy.Quota{all(quota.Limits{MaxActive: 3})}, []string{nab, namespace, backups, backups}},
		"of bytes": {
			[]policy.Quota{all(quota.Limits{MaxBytes: resource.MustParse("1Ti")})},
			[]string{nab, namespace, backups, volumes, uploads, backups},
		},
	} {
		t.Run(title, func(t *testing.T) {
			w := fake.New(t, fake.NAB(activitytest.Name), aged("earlier", 0))
			serve(t, w, "earlier")
			w.Policy.Quotas = test.quotas
			var read []string
			w.FailReads(func(object runtime.Object) error {
				read = append(read, fmt.Sprintf("%T", object))
				return nil
			})
			activitytest.Do(t, w, contract.RefreshBackup.Name)
			assert.Equal(t, test.want, read)
		})
	}
}

func TestTheLabelsOfTheNamespaceChooseItsQuota(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace, Labels: map[string]string{"tier": "gold"}}}
	w := limited(t, quota.Limits{MaxStored: 1}, namespace, aged("first", 0), aged("second", 1))
	w.Policy.Quotas = append([]policy.Quota{{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, Limits: quota.Limits{MaxStored: 2},
	}}, w.Policy.Quotas...)
	serve(t, w, "first")
	assert.True(t, serve(t, w, "second").EverCreated)
}

func TestWhatCannotBeCountedIsRetried(t *testing.T) {
	w := limited(t, quota.Limits{MaxStored: 5}, fake.NAB(activitytest.Name))
	w.FailReads(func(object runtime.Object) error {
		if _, list := object.(*oadpv1alpha1.NonAdminBackupList); list {
			return fake.ErrAway
		}
		return nil
	})
	_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
	require.ErrorContains(t, err, "list NonAdminBackups of namespace team: connection refused")
	assert.Nil(t, w.Velero(activitytest.Ours))
}
