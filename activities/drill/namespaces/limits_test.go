package namespaces_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

// A quota of limits refuses Pods without any, and Kubernetes those that request more than their limit.
func TestAContainerWithoutLimitsGetsItsShareOfTheQuota(t *testing.T) {
	for title, test := range map[string]struct {
		quota map[string]string
		want  map[corev1.ResourceName]string
	}{
		"by default": {policy.Drills{}.Quota(), map[corev1.ResourceName]string{"cpu": "4", "memory": "8Gi", "ephemeral-storage": "4Gi"}},
		"by the policy": {
			map[string]string{"pods": "4", "limits.cpu": "2", "limits.memory": "1Gi"},
			map[corev1.ResourceName]string{"cpu": "500m", "memory": "256Mi"},
		},
		"no less than is requested": {
			map[string]string{"pods": "0", "limits.cpu": "0", "limits.memory": "1"}, map[corev1.ResourceName]string{"cpu": "100m", "memory": "64Mi"},
		},
		"of an older worker's": {map[string]string{"pods": "3"}, map[corev1.ResourceName]string{}},
	} {
		t.Run(title, func(t *testing.T) {
			a, c := world(t)
			in := wanted("u-1")
			in.Quota = test.quota
			_, err := perform(t, a, contract.PrepareDrillNamespace.Name, in)
			require.NoError(t, err)
			var ranges corev1.LimitRangeList
			require.NoError(t, c.List(t.Context(), &ranges, client.InNamespace(in.Name)))
			require.Len(t, ranges.Items, 1)
			got := map[corev1.ResourceName]string{}
			for name, limit := range ranges.Items[0].Spec.Limits[0].Default {
				got[name] = limit.String()
			}
			assert.Equal(t, test.want, got)
			for name, request := range ranges.Items[0].Spec.Limits[0].DefaultRequest {
				if limit, limited := ranges.Items[0].Spec.Limits[0].Default[name]; limited {
					assert.LessOrEqual(t, request.Cmp(limit), 0, name)
				}
			}
		})
	}
}

// NodeLocal DNSCache listens on an address of the node.
func TestDNSOfTheNodeIsReachedAndNothingElseThere(t *testing.T) {
	a, c := world(t)
	in := wanted("u-1")
	in.DNS = []string{"10.0.0.10/32"}
	_, err := perform(t, a, contract.PrepareDrillNamespace.Name, in)
	require.NoError(t, err)
	var policies networkingv1.NetworkPolicyList
	require.NoError(t, c.List(t.Context(), &policies, client.InNamespace(in.Name)))
	require.Len(t, policies.Items, 1)
	var blocks []string
	for _, rule := range policies.Items[0].Spec.Egress {
		for _, peer := range rule.To {
			if peer.IPBlock == nil {
				continue
			}
			blocks = append(blocks, peer.IPBlock.CIDR)
			for _, port := range rule.Ports {
				assert.Contains(t, []int32{53, 5353}, port.Port.IntVal)
			}
		}
	}
	assert.Equal(t, []string{"169.254.20.10/32", "10.0.0.10/32"}, blocks)
}
