package velero

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmware-tanzu/velero/pkg/apis/velero/shared"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/quota"
)

// shopWithQuota is a cluster in which namespace shop has two backups and two that wait, and bank has no limits.
func shopWithQuota(rules string) client.Reader {
	nab := func(namespace, name string, ago time.Duration) *oadpv1alpha1.NonAdminBackup {
		return &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-ago)),
		}}
	}
	made := func(nab *oadpv1alpha1.NonAdminBackup, phase velerov1.BackupPhase) *oadpv1alpha1.NonAdminBackup {
		name := owner.NACUUID("west", nab.Namespace, nab.Name, string(nab.UID))
		lifecycle.ApplyVerdict(nab, check.Verdict{Accepted: true, Reason: "BackupAccepted"}, name, "openshift-adp")
		lifecycle.ApplyCreated(nab)
		nab.Status.VeleroBackup.Status = &velerov1.BackupStatus{Phase: phase}
		for i := range nab.Status.Conditions {
			nab.Status.Conditions[i].LastTransitionTime = nab.CreationTimestamp
		}
		return nab
	}
	waits := func(nab *oadpv1alpha1.NonAdminBackup) *oadpv1alpha1.NonAdminBackup {
		lifecycle.ApplyVerdict(nab, check.Verdict{Reason: oadpv1alpha1.ReasonQuotaExceeded, Message: "full\x1b[2J"}, "", "")
		return nab
	}
	first := made(nab("shop", "first", 30*time.Hour), "Completed")
	objects := []client.Object{
		first, made(nab("shop", "second", 2*time.Hour), "InProgress"),
		waits(nab("shop", "younger", time.Minute)), waits(nab("shop", "older", time.Hour)),
		made(nab("bank", "vault", time.Hour), "Completed"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-adp", Name: "holdfast-policy"}, Data: map[string]string{"holdfast": rules}},
		&velerov1.PodVolumeBackup{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "openshift-adp", Name: "volume", Labels: map[string]string{velerov1.BackupNameLabel: first.Status.VeleroBackup.Name},
			},
			Spec:   velerov1.PodVolumeBackupSpec{Pod: corev1.ObjectReference{Namespace: "shop"}},
			Status: velerov1.PodVolumeBackupStatus{Progress: shared.DataMoveOperationProgress{TotalBytes: 3 << 30}},
		},
	}
	for name, tier := range map[string]string{"shop": "free", "bank": "gold", "openshift-adp": "", "kube-system": ""} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}})
	}
	return fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(objects...).Build()
}

const goldIsFree = `quotas:
- {namespaceSelector: {matchLabels: {tier: gold}}}
- {namespaceSelector: {}, maxStored: 2, maxPerDay: 20, maxBytes: 10Gi}`

func TestWhatANamespaceUsesOfItsQuotaIsShown(t *testing.T) {
	scope := QuotaScope{ClusterID: "west", OADPNamespace: "openshift-adp", Namespace: "shop"}
	quotas, err := ReadQuotas(t.Context(), shopWithQuota(goldIsFree), scope, noon)
	require.NoError(t, err)
	require.Len(t, quotas, 1)
	q := quotas[0]
	assert.Equal(t, []Use{
		{quota.MaxStored, 2, 2}, {quota.MaxActive, 1, 0}, {quota.MaxPerDay, 1, 20}, {quota.MaxBytes, 3 << 30, 10 << 30},
	}, q.Uses)
	var out strings.Builder
	require.NoError(t, q.Print(&out))
	assert.Equal(t, `Namespace:  shop
Quota:      quotas[1] of the policy, which selects all namespaces
maxStored:  2 of 2
maxActive:  1, no limit
maxPerDay:  1 of 20
maxBytes:   3Gi of 10Gi
Waits:      older, created 2026-11-24T11:00:00Z: full\x1b[2J
Waits:      younger, created 2026-11-24T11:59:00Z: full\x1b[2J
`, out.String())
	assert.Equal(t, "maxStored 2 of 2, maxPerDay 1 of 20, maxBytes 3Gi of 10Gi; 2 wait", q.Summary())

	scope.Namespace = "bank"
	quotas, err = ReadQuotas(t.Context(), shopWithQuota(goldIsFree), scope, noon)
	require.NoError(t, err)
	assert.Equal(t, "tier=gold", quotas[0].Selector)
	assert.Empty(t, quotas[0].Summary())
	quotas, err = ReadQuotas(t.Context(), shopWithQuota("{}"), scope, noon)
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, quotas[0].Print(&out))
	assert.Contains(t, out.String(), "none: no quota of the policy selects this namespace")
	assert.Contains(t, out.String(), "maxStored:  1, no limit")
}

func TestOfAllNamespacesThoseWithLimitsAreRead(t *testing.T) {
	scope := QuotaScope{ClusterID: "west", OADPNamespace: "openshift-adp"}
	quotas, err := ReadQuotas(t.Context(), shopWithQuota(goldIsFree), scope, noon)
	require.NoError(t, err)
	require.Len(t, quotas, 1)
	assert.Equal(t, "shop", quotas[0].Namespace)
	quotas, err = ReadQuotas(t.Context(), shopWithQuota("{}"), scope, noon)
	require.NoError(t, err)
	assert.Empty(t, quotas)
}

func TestWhatPreventsThatAQuotaIsShown(t *testing.T) {
	scope := QuotaScope{ClusterID: "west", OADPNamespace: "openshift-adp", Namespace: "nowhere"}
	_, err := ReadQuotas(t.Context(), shopWithQuota(goldIsFree), scope, noon)
	require.True(t, apierrors.IsNotFound(err))
	require.ErrorContains(t, err, "get Namespace nowhere")
	_, err = ReadQuotas(t.Context(), shopWithQuota("quotas: [{namespaceSelector: {}, maxStored: -1}]"), scope, noon)
	var unusable *check.UnusableError
	require.ErrorAs(t, err, &unusable)
	require.ErrorContains(t, err, "policy in ConfigMap openshift-adp/holdfast-policy key holdfast cannot be used: quotas[0].maxStored must not be negative")
}
