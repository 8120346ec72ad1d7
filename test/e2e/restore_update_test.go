package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// An old backup in an administrator's location gives nothing back that has been revoked since, by changing what exists. What was
// deleted since comes back, as everything of the namespace does.
func TestAnUpdateGivesBackNothingThatWasRevoked(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "frank")
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: x.namespace, Name: name} }
	settings := &corev1.ConfigMap{ObjectMeta: named("settings"), Data: map[string]string{"key": "old"}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: named("revoked"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}},
	}
	role := &rbacv1.Role{ObjectMeta: named("revoked"), Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}},
	}}
	quota := &corev1.ResourceQuota{ObjectMeta: named("limit"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/leases.coordination.k8s.io": resource.MustParse("1000")},
	}}
	network := &networkingv1.NetworkPolicy{ObjectMeta: named("closed"), Spec: networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{}},
	}}
	deleted := &rbacv1.Role{ObjectMeta: named("deleted")}
	for _, object := range []client.Object{settings, binding, role, quota, network, deleted} {
		require.NoError(t, admin.Create(t.Context(), object))
	}
	nab := x.completed("nightly")
	settings.Data["key"] = "new"
	binding.Subjects, role.Rules, network.Spec.Ingress = nil, nil, nil
	quota.Spec.Hard["count/leases.coordination.k8s.io"] = resource.MustParse("1")
	for _, object := range []client.Object{settings, binding, role, quota, network} {
		require.NoError(t, admin.Update(t.Context(), object))
	}
	require.NoError(t, admin.Delete(t.Context(), deleted))

	nar := x.awaitFinalizedAs(x.restore("plain", nab.Name), oadpv1alpha1.FinalizationPhaseCompleted)
	assert.True(t, exists(t, deleted), "everything of the namespace comes back")
	assert.Nil(t, restoreCondition(nar, oadpv1alpha1.NonAdminConditionFiltered))
	require.NoError(t, admin.Delete(t.Context(), deleted))
	nar = x.awaitFinalized(x.restore("over", nab.Name, func(spec *velerov1.RestoreSpec) {
		spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
	}))
	assert.Equal(t, map[string]string{"key": "old"}, configMaps(t, x.namespace)["settings"], "what exists is updated")
	for _, object := range []client.Object{binding, role, quota, network} {
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	}
	assert.Empty(t, binding.Subjects)
	assert.Empty(t, role.Rules)
	assert.Empty(t, network.Spec.Ingress)
	assert.Equal(t, int64(1), quota.Spec.Hard.Name("count/leases.coordination.k8s.io", resource.DecimalSI).Value())
	assert.False(t, exists(t, deleted), "roles are excluded whole")
	recordRestore(t, nar)
}
