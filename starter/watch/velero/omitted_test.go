package velero

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/backupspec"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

func inCache[T client.Object](t *testing.T, object T) T {
	t.Helper()
	var kinds []*caches.Kind
	for _, watcher := range Kinds(&Env{Env: &controllers.Env{}}) {
		kinds = append(kinds, watcher.Watched()...)
	}
	kept, err := caches.Transform(kinds)(object)
	require.NoError(t, err)
	return kept.(T)
}

// judgedBackup is a NonAdminBackup in BackingOff as its workflow judged it.
func judgedBackup(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, there ...client.Object) *oadpv1alpha1.NonAdminBackup {
	t.Helper()
	verdict := check.Verdict{Reason: oadpv1alpha1.ReasonInvalidBackupSpec}
	_, err := backupspec.Validate(t.Context(), fake.New(t, there...).Client, fake.OADPNamespace, nab, policy.Policy{})
	require.Error(t, err)
	verdict.Message = err.Error()
	lifecycle.ApplyVerdict(nab, verdict, "", "")
	return nab
}

// largeBackup returns a NonAdminBackup in BackingOff with a spec of about that size.
func largeBackup(t *testing.T, size int) *oadpv1alpha1.NonAdminBackup {
	t.Helper()
	nab := fake.NAB(name)
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"x"}
	nab.Spec.BackupSpec.IncludedResources = []string{strings.Repeat("x", size)}
	return judgedBackup(t, nab)
}

// largeRestore is the like of it.
func largeRestore(size int) *oadpv1alpha1.NonAdminRestore {
	nar := fake.NAR(name, "source")
	nar.Spec.RestoreSpec.IncludedResources = []string{strings.Repeat("x", size)}
	verdict := check.Verdict{Reason: oadpv1alpha1.ReasonInvalidRestoreSpec}
	verdict.Message = restorespec.Validate(nar, restorespec.Source{}, policy.Policy{}).Error()
	lifecycle.ApplyVerdict(nar, verdict, "", "")
	return nar
}

// told is what a look at the backup tells, with what the cache has.
func told(t *testing.T, there ...client.Object) []string {
	t.Helper()
	for i := range there {
		there[i] = inCache(t, there[i])
	}
	s := newStation(t, there...)
	_, err := s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	return s.signals.Sent
}

// A rejection that was told once is not told again, whatever the cache has kept of the spec.
func TestARejectedSpecIsLeftAloneWhateverItsSize(t *testing.T) {
	for _, size := range []int{1 << 10, 100_000, 900_000} {
		assert.Empty(t, told(t, largeBackup(t, size)), size)
	}
	edited := largeBackup(t, 100_000)
	edited.Generation++
	assert.Len(t, told(t, edited), 1, "of an edited spec nothing was said")
	obstructed := largeBackup(t, 100_000)
	obstructed.Status.Conditions[0].Reason = lifecycle.ReasonVeleroBackupNotOwned
	assert.Len(t, told(t, obstructed), 1, "what stood in its way is gone")
}

// The policy may reject what the cache has not kept: when it was written, the workflows judge again.
func TestAfterThePolicyWasWrittenWorkflowsJudgeWhatIsNotKept(t *testing.T) {
	s := newStation(t, inCache(t, largeBackup(t, 100_000)), inCache(t, largeRestore(100_000)))
	s.backups.PolicyWritten(t.Context(), true)
	s.restores.PolicyWritten(t.Context(), true)
	s.downloads.PolicyWritten(t.Context(), true)
	assert.Equal(t, forced(name), s.backups.Requested())
	assert.Equal(t, forced(name), s.restores.Requested())
	assert.Empty(t, s.downloads.Requested(), "no policy speaks of them")
}

// Of a large spec it is kept which location it names, and with that whether the rejection still holds.
func TestALargeSpecIsJudgedAgainWhenItsLocationChanges(t *testing.T) {
	waiting := func(size int) *oadpv1alpha1.NonAdminBackupStorageLocation {
		store := fake.NaBSL("store")
		store.Spec.BackupStorageLocationSpec.Config = map[string]string{"a": strings.Repeat("x", size)}
		store.Status.Phase = oadpv1alpha1.NonAdminPhaseNew
		store.Status.Conditions = []metav1.Condition{{
			Type: string(oadpv1alpha1.NonAdminConditionClusterAdminApproved), Status: metav1.ConditionFalse, Message: "waits for approval",
		}}
		return store
	}
	for _, size := range []int{1 << 10, 100_000} {
		nab := fake.NAB(name)
		nab.Spec.BackupSpec.StorageLocation = "store"
		nab.Spec.BackupSpec.IncludedResources = []string{strings.Repeat("x", size)}
		for _, storeSize := range []int{1 << 10, 40 << 10} {
			store := waiting(storeSize)
			assert.Empty(t, told(t, judgedBackup(t, nab.DeepCopy(), store), store), "it waits as before")
		}
		assert.Len(t, told(t, judgedBackup(t, nab.DeepCopy(), waiting(0))), 1, "the location is gone")
	}
}

// A status may be forged: what it names is quoted.
func TestALargeLocationWithAForgedStatusDoesNotChangeTheVerdict(t *testing.T) {
	store := fake.NaBSL("store")
	store.Spec.BackupStorageLocationSpec.Config = map[string]string{"a": strings.Repeat("x", 40<<10)}
	store.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	store.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: strings.Repeat("n", 300)}
	nab := fake.NAB(name)
	nab.Spec.BackupSpec.StorageLocation = "store"
	assert.Empty(t, told(t, judgedBackup(t, nab, store), store))
}

func TestASpecThatGrewTooLargeIsSignalled(t *testing.T) {
	nab := largeBackup(t, 1<<10)
	nab.Spec.BackupSpec.IncludedResources = []string{strings.Repeat("x", 900_000)} // of a generation that was judged
	s := newStation(t, inCache(t, nab))
	_, err := s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.Len(t, s.signals.Sent, 1)
}

func TestALargeSpecOfARestoreIsJudgedAgainWhenItsSourceChanges(t *testing.T) {
	look := func(there ...client.Object) []string {
		s := newStation(t, there...)
		_, err := s.restores.Reconcile(t.Context(), request(name))
		require.NoError(t, err)
		return s.signals.Sent
	}
	for _, size := range []int{100_000, 900_000} {
		assert.Empty(t, look(inCache(t, largeRestore(size))), "its source is missing still")
	}
	source := inCache(t, fake.NAB("source"))
	assert.Len(t, look(inCache(t, largeRestore(100_000)), source), 1)
	assert.Empty(t, look(inCache(t, largeRestore(900_000)), source), "it is too large whatever its source")

	unnamed := largeRestore(100_000)
	unnamed.Spec.RestoreSpec.BackupName = strings.Repeat("n", 300)
	meta.FindStatusCondition(unnamed.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted)).Message = restorespec.Validate(unnamed, restorespec.Source{}, policy.Policy{}).Error()
	assert.Empty(t, look(inCache(t, unnamed)), "no backup can have the name")
}
