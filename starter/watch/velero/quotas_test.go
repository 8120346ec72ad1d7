package velero

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/trim"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

// overQuotaOf returns a NonAdminBackup that a quota holds back, created so many seconds after the others.
func overQuotaOf(name string, seconds int, verdict quota.Verdict) *oadpv1alpha1.NonAdminBackup {
	nab := fake.NAB(name)
	nab.CreationTimestamp = metav1.NewTime(fake.PlanTime.Add(time.Duration(seconds) * time.Second))
	lifecycle.ApplyVerdict(nab, check.Verdict{Reason: oadpv1alpha1.ReasonQuotaExceeded, Message: verdict.Message()}, "", "")
	return nab
}

func stored(used int64) quota.Verdict {
	return quota.Verdict{Exceeded: quota.MaxStored, Used: used, Limit: 1}
}

func quotas(limits quota.Limits) policy.Policy {
	return policy.Policy{Own: policy.Own{Quotas: []policy.Quota{{NamespaceSelector: &metav1.LabelSelector{}, Limits: limits}}}}
}

func (s *station) judged(t *testing.T, limits quota.Limits, name string) (sent []string, again time.Duration) {
	t.Helper()
	s.policy.Write("1", quotas(limits), nil)
	s.signals.Sent = nil
	result, err := s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	return s.signals.Sent, result.RequeueAfter
}

func TestABackupThatAQuotaHoldsBackIsSettledUntilThereIsAPlace(t *testing.T) {
	first, made := tracked("first", "Completed")
	waiting, next := overQuotaOf("waiting", 1, stored(1)), overQuotaOf("next", 2, stored(1))
	s := newStation(t, inCache(t, first), inCache(t, made), inCache(t, waiting), inCache(t, next))
	limits := quota.Limits{MaxStored: 1}
	for _, name := range []string{"waiting", "next"} {
		sent, again := s.judged(t, limits, name)
		assert.Empty(t, sent)
		assert.Equal(t, 5*time.Minute, again)
	}
	sent, _ := s.judged(t, quota.Limits{MaxStored: 2}, "waiting")
	assert.Equal(t, []string{"start nab team/waiting uid-waiting"}, sent, "the policy allows it")
	sent, _ = s.judged(t, quota.Limits{}, "next")
	assert.Len(t, sent, 1, "there is no quota any more")

	kept := s.cache.Read("first")
	kept.Finalizers = nil
	require.NoError(t, s.cache.Client.Update(t.Context(), kept))
	require.NoError(t, s.cache.Client.Delete(t.Context(), kept))
	sent, _ = s.judged(t, limits, "next")
	assert.Empty(t, sent, "the place is the older one's")
	sent, _ = s.judged(t, limits, "waiting")
	assert.Len(t, sent, 1)
}

func TestALimitOfADayIsJudgedAgainWhenItPasses(t *testing.T) {
	first, made := tracked("first", "Completed")
	begun := time.Now().Add(-quota.Day).Add(2 * time.Minute).Truncate(time.Second)
	for i := range first.Status.Conditions {
		first.Status.Conditions[i].LastTransitionTime = metav1.NewTime(begun)
	}
	verdict := quota.Verdict{Exceeded: quota.MaxPerDay, Used: 1, Limit: 1, Passes: begun.Add(quota.Day)}
	s := newStation(t, inCache(t, first), inCache(t, made), inCache(t, overQuotaOf("waiting", 1, verdict)))
	sent, again := s.judged(t, quota.Limits{MaxPerDay: 1}, "waiting")
	assert.Empty(t, sent)
	assert.InDelta(t, 2*time.Minute, again, float64(3*time.Second))
	first = first.DeepCopy()
	for i := range first.Status.Conditions {
		first.Status.Conditions[i].LastTransitionTime = metav1.NewTime(begun.Add(-2 * time.Minute))
	}
	s = newStation(t, inCache(t, first), inCache(t, made), inCache(t, overQuotaOf("waiting", 1, verdict)))
	sent, _ = s.judged(t, quota.Limits{MaxPerDay: 1}, "waiting")
	assert.Len(t, sent, 1)
}

// The cache has not the size of volumes: the workflow judges at each resync.
func TestALimitOfBytesIsJudgedByTheWorkflow(t *testing.T) {
	verdict := quota.Verdict{Exceeded: quota.MaxBytes, Used: 1 << 30, Limit: 1 << 30}
	s := newStation(t, inCache(t, overQuotaOf("waiting", 1, verdict)))
	sent, _ := s.judged(t, quota.Limits{MaxBytes: resource.MustParse("1Gi")}, "waiting")
	assert.Len(t, sent, 1)
}

func TestALargeSpecThatAQuotaHoldsBackIsSettled(t *testing.T) {
	first, made := tracked("first", "Completed")
	waiting := overQuotaOf("waiting", 1, stored(1))
	waiting.Spec.BackupSpec.IncludedResources = []string{strings.Repeat("x", 100_000)}
	s := newStation(t, inCache(t, first), inCache(t, made), inCache(t, waiting))
	require.NotZero(t, trim.OmittedBytes(inCache(t, waiting)))
	sent, _ := s.judged(t, quota.Limits{MaxStored: 1}, "waiting")
	assert.Empty(t, sent)
	sent, _ = s.judged(t, quota.Limits{MaxStored: 2}, "waiting")
	assert.Len(t, sent, 1)
}

// What frees a place, or a wish for one, wakes the oldest that waits, and nobody else.
func TestWhatFreesAPlaceWakesTheOldest(t *testing.T) {
	running, _ := tracked("first", "InProgress")
	ended, _ := tracked("first", "Completed")
	expired := ended.DeepCopy()
	lifecycle.ApplyBackup(expired, fake.VeleroName("first"), nil, fake.OADPNamespace)
	fresh, refused := fake.NAB("first"), keptBack("first")
	deleted := edited(fake.NAB("first"), func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.DeleteBackup = true })
	older, younger := overQuotaOf("older", 1, stored(1)), overQuotaOf("younger", 2, stored(1))
	going := overQuotaOf("going", 0, stored(1))
	going.Spec.DeleteBackup = true
	queued := edited(running, func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: 3}
	})
	for title, test := range map[string]struct {
		before, after *oadpv1alpha1.NonAdminBackup
		wakes         bool
	}{
		"it ends":                      {running, ended, true},
		"it expires":                   {ended, expired, true},
		"it is gone":                   {ended, nil, true},
		"it waited, and is refused":    {fresh, refused, true},
		"it waited, and is deleted":    {fresh, deleted, true},
		"it waited, and is made":       {fresh, running, true},
		"only its position is another": {running, queued, false},
		"it is new":                    {nil, fresh, false},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, younger.DeepCopy(), older.DeepCopy(), going.DeepCopy())
			s.policy.Write("1", quotas(quota.Limits{MaxStored: 1}), nil)
			var was, is client.Object
			if test.before != nil {
				was = test.before
			}
			if test.after != nil {
				is = test.after
			}
			events := controllers.Both(s.backups.events(), s.backups.placeEvents())
			woken := watchtest.Happens(t.Context(), events, was, is)
			assert.Equal(t, test.wakes, has(woken, "older"))
			assert.False(t, has(woken, "younger") || has(woken, "going"))
			s.policy.Write("2", policy.Policy{}, nil)
			assert.False(t, has(watchtest.Happens(t.Context(), events, was, is), "older"), "without quotas nobody")
		})
	}
}

func has(woken []added, name string) bool {
	for _, each := range woken {
		if each.Name == name {
			return true
		}
	}
	return false
}

// A refusal for another reason becomes one by the quota without a new phase: a place may have become free meanwhile.
func TestAQuotasRefusalIsJudgedOnceMore(t *testing.T) {
	s := newStation(t)
	after := edited(keptBack(name), func(nab *oadpv1alpha1.NonAdminBackup) {
		lifecycle.ApplyVerdict(nab, check.Verdict{Reason: oadpv1alpha1.ReasonQuotaExceeded, Message: "full"}, "", "")
	})
	assert.True(t, has(watchtest.Happens(t.Context(), controllers.Both(s.backups.events(), s.backups.placeEvents()), keptBack(name), after), name))
}

func TestTheLabelsOfANamespaceAreKeptAndWakeWhatAQuotaHoldsBack(t *testing.T) {
	metadataOf := func(tier string) *metav1.PartialObjectMetadata {
		kept := caches.Namespaces.Object.DeepCopyObject().(*metav1.PartialObjectMetadata)
		kept.Name, kept.ResourceVersion = fake.Namespace, tier
		kept.Labels = map[string]string{"tier": tier}
		return inCache(t, kept)
	}
	gold, free := metadataOf("gold"), metadataOf("free")
	require.Equal(t, "gold", gold.Labels["tier"])
	s := newStation(t, overQuotaOf("older", 1, stored(1)), overQuotaOf("younger", 2, stored(1)), keptBack("refused"))
	events := controllers.Both(s.backups.namespaceEvents(), s.backups.quotaEvents())
	assert.ElementsMatch(t, atOnce(request("older"), request("younger")), watchtest.Happens(t.Context(), events, free, gold))
	assert.Empty(t, watchtest.Happens(t.Context(), events, gold, gold))

	first, made := tracked("first", velerov1.BackupPhaseCompleted)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace, Labels: gold.Labels}}
	s = newStation(t, namespace, inCache(t, first), inCache(t, made), inCache(t, overQuotaOf("older", 1, stored(1))))
	rules := quotas(quota.Limits{MaxStored: 1})
	rules.Quotas[0].NamespaceSelector.MatchLabels = map[string]string{"tier": "free"}
	s.policy.Write("1", rules, nil)
	_, err := s.backups.Reconcile(t.Context(), request("older"))
	require.NoError(t, err)
	assert.Len(t, s.signals.Sent, 1, "that quota is not the namespace's")
}
