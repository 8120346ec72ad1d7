package watch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/restore"
	"holdfast.dev/holdfast/k8s/watch/trim"
	"holdfast.dev/holdfast/test/fake"
)

func inCache[T client.Object](t *testing.T, object T) T {
	t.Helper()
	kept, err := trim.Object(object)
	require.NoError(t, err)
	return kept.(T)
}

// largeBackup returns a NonAdminBackup in BackingOff with a spec of about that size, judged as its workflow judges it.
func largeBackup(t *testing.T, size int) *oadpv1alpha1.NonAdminBackup {
	t.Helper()
	nab := fake.NAB(name)
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"x"}
	nab.Spec.BackupSpec.IncludedResources = []string{strings.Repeat("x", size)}
	verdict := backup.Verdict{Reason: oadpv1alpha1.ReasonInvalidBackupSpec}
	verdict.Message = policy.ValidateBackup(t.Context(), fake.New(t).Client, fake.OADPNamespace, nab, policy.Policy{}).Error()
	backup.ApplyVerdict(nab, verdict, "", "")
	return nab
}

func TestASpecOfWhichOnlyTheSizeIsKept(t *testing.T) {
	for title, test := range map[string]struct {
		size int
		want []string
	}{
		"is judged, if it is small":                        {size: 1 << 10},
		"is refused for its size, as its workflow does it": {size: 900_000},
		"is its workflow's to judge in between": {
			size: 100_000, want: []string{"start nab team/nightly uid-nightly"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, inCache(t, largeBackup(t, test.size)))
			_, err := s.look(t.Context(), request(name))
			require.NoError(t, err)
			assert.Equal(t, test.want, s.signals.told)
		})
	}
}

func TestASpecThatGrewTooLargeIsTold(t *testing.T) {
	nab := largeBackup(t, 1<<10)
	nab.Spec.BackupSpec.IncludedResources = []string{strings.Repeat("x", 900_000)} // of a generation that was judged
	s := newStation(t, inCache(t, nab))
	_, err := s.look(t.Context(), request(name))
	require.NoError(t, err)
	assert.Len(t, s.signals.told, 1)
}

func TestALargeSpecOfARestoreIsJudgedByItsSize(t *testing.T) {
	nar := fake.NAR(name, "source")
	nar.Spec.RestoreSpec.IncludedResources = []string{strings.Repeat("x", 900_000)}
	verdict := restore.Verdict{Reason: oadpv1alpha1.ReasonInvalidRestoreSpec}
	verdict.Message = policy.ValidateRestore(nar, policy.RestoreSource{}, policy.Policy{}).Error()
	restore.ApplyVerdict(nar, verdict, "", "")
	s := newStation(t, inCache(t, nar))
	_, err := s.restores.look(t.Context(), request(name))
	require.NoError(t, err)
	assert.Empty(t, s.signals.told)

	nar.Spec.RestoreSpec.IncludedResources = []string{strings.Repeat("x", 100_000)}
	s = newStation(t, inCache(t, nar))
	_, err = s.restores.look(t.Context(), request(name))
	require.NoError(t, err)
	assert.Len(t, s.signals.told, 1)
}

// What is not in the cache must not be deleted by a patch that was computed from it.
func TestAPatchOfATrimmedObjectTouchesNothingElse(t *testing.T) {
	nab, velero := tracked(name, velerov1.BackupPhaseInProgress)
	nab.Spec.BackupSpec.IncludedResources = []string{"pods"}
	nab.Labels, nab.Annotations = map[string]string{"team": strings.Repeat("x", 4<<10)}, map[string]string{"a": "b"}
	nab.Finalizers = append(nab.Finalizers, "theirs/finalizer")
	s := newStation(t, nab, velero)
	key := client.ObjectKeyFromObject(nab)
	stored := &oadpv1alpha1.NonAdminBackup{}
	require.NoError(t, s.cache.Client.Get(t.Context(), key, stored))
	before := inCache(t, stored.DeepCopy())
	require.NotEqual(t, stored.Spec, before.Spec)
	change := positionChange{object: before, position: 7}
	require.NoError(t, s.cache.Client.Status().Patch(t.Context(), change.show(), k8s.BoundPatch(before)))
	after := &oadpv1alpha1.NonAdminBackup{}
	require.NoError(t, s.cache.Client.Get(t.Context(), key, after))
	stored.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: 7}
	stored.ResourceVersion = after.ResourceVersion
	assert.Equal(t, stored, after)
}
