package drills_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/test/env"
)

// allowing is a policy that allows drills, with more fields of its part about them.
func allowing(more string) string {
	return "drills: {enabled: true, maxActive: 4, tenantsMayLook: true" + more + "}\nqueue: {maxActiveRestores: 3}"
}

// allow sets the policy. It is for tests that run alone.
func allow(t *testing.T, content string) {
	t.Helper()
	rules := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: policy.ConfigMapName}}
	require.NoError(t, admin.Get(context.Background(), client.ObjectKeyFromObject(rules), rules))
	rules.Data[policy.ConfigMapOwnKey] = content
	require.NoError(t, admin.Update(context.Background(), rules))
}

// What a drill runs costs no more than the administrator allows. The policy is that of all tests, so this one is not parallel.
func TestTheQuotaOfADrillRefusesWhatIsBeyondIt(t *testing.T) {
	allow(t, allowing(`, resourceQuota: {pods: "1"}`))
	t.Cleanup(func() { allow(t, allowing("")) })
	x := newTenant(t, "heidi")
	web := workload("web", running)
	web.Spec.Replicas = ptr.To[int32](2)
	x.create(web)
	eventually.IsTrue(t, patience, "the workload runs", func() bool {
		err := x.client.Get(context.Background(), client.ObjectKeyFromObject(web), web)
		return err == nil && web.Status.AvailableReplicas == 2
	})
	x.backUp("nightly")

	drill := x.drill("weekly", "nightly", lasting("90s"))
	restored := x.await(drill, "has restored", func(s *holdfastv1alpha1.RestoreDrillStatus) bool { return s.Restored != nil })
	var quotas corev1.ResourceQuotaList
	var pods corev1.PodList
	place := client.InNamespace(restored.Status.Namespace)
	eventually.IsTrue(t, patience, "one Pod is there, and counted", func() bool {
		if admin.List(context.Background(), &quotas, place) != nil || admin.List(context.Background(), &pods, place) != nil {
			return false
		}
		used := len(quotas.Items) == 1 && quotas.Items[0].Status.Used.Pods().Value() == 1
		return used && len(pods.Items) == 1
	})
	assert.Equal(t, int64(1), quotas.Items[0].Status.Hard.Pods().Value())

	ended := x.awaitEnd(drill)
	condition := verified(t, ended)
	assert.Equal(t, metav1.ConditionUnknown, condition.Status, "what the administrator does not allow is no fault of the backup: %+v",
		ended.Status)
	assert.Contains(t, findings(ended), "exceeded quota", "a finding says why")
}
