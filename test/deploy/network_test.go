package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// caller is a Pod that wants to reach one of Temporal's.
type caller struct {
	elsewhere      bool // not in the policy's namespace
	namespace, pod map[string]string
}

func matches(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return parsed.Matches(labels.Set(set))
}

// lets evaluates a NetworkPolicy as a cluster's network does.
func lets(t *testing.T, policy *networkingv1.NetworkPolicy, from caller, port int) bool {
	t.Helper()
	for _, rule := range policy.Spec.Ingress {
		open := len(rule.Ports) == 0
		for _, p := range rule.Ports {
			open = open || p.Port.IntValue() == port
		}
		require.NotEmpty(t, rule.From, "a rule without a source lets in everybody")
		for _, peer := range rule.From {
			require.Nil(t, peer.IPBlock)
			here := peer.NamespaceSelector == nil && !from.elsewhere
			there := peer.NamespaceSelector != nil && matches(t, peer.NamespaceSelector, from.namespace)
			if open && (here || there) && (peer.PodSelector == nil || matches(t, peer.PodSelector, from.pod)) {
				return true
			}
		}
	}
	return false
}

// This says what the policy asks for; whether a cluster's network enforces it cannot be tried here.
func TestOnlyHoldfastAndOperatorsReachTemporal(t *testing.T) {
	base := render(t, inCheckout(t, "deploy", "base"))
	policy := into[networkingv1.NetworkPolicy](t, base.find(t, "NetworkPolicy/holdfast-temporal"))
	temporal := map[string]string{"app.kubernetes.io/name": "temporal", "app.kubernetes.io/component": "frontend"}
	assert.True(t, matches(t, &policy.Spec.PodSelector, temporal))
	assert.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes)
	for _, name := range []string{workerName, watcherName} {
		assert.False(t, matches(t, &policy.Spec.PodSelector, base.deployment(t, name).Spec.Template.Labels), "it is about Temporal alone")
	}

	operators := map[string]string{"holdfast.dev/temporal-access": "operators"}
	holdfast := map[string]string{"holdfast.dev/temporal-access": "holdfast"}
	worker := base.deployment(t, workerName).Spec.Template.Labels
	watcher := base.deployment(t, watcherName).Spec.Template.Labels
	all, frontend, none := []int{7233, 7243, 8080, 9090}, []int{7233}, []int(nil)
	tests := map[string]struct {
		from caller
		want []int
	}{
		"the worker":                             {caller{pod: worker}, frontend},
		"the watcher":                            {caller{pod: watcher}, frontend},
		"the worker, Temporal elsewhere":         {caller{elsewhere: true, namespace: holdfast, pod: worker}, frontend},
		"the worker, its namespace unlabelled":   {caller{elsewhere: true, pod: worker}, none},
		"Velero beside the worker":               {caller{elsewhere: true, namespace: holdfast, pod: map[string]string{"name": "velero"}}, none},
		"Velero in the same namespace":           {caller{pod: map[string]string{"name": "velero"}}, none},
		"Temporal's own Pods":                    {caller{pod: temporal}, []int{7233, 7234, 7243, 8080, 9090}},
		"the Pod of helm test":                   {caller{pod: map[string]string{"app.kubernetes.io/name": "holdfast-test"}}, frontend},
		"an operator's Pod in this namespace":    {caller{pod: operators}, all},
		"a Pod of an operators' namespace":       {caller{elsewhere: true, namespace: operators}, all},
		"a tenant":                               {caller{elsewhere: true}, none},
		"a tenant that labels its Pod operators": {caller{elsewhere: true, pod: operators}, none},
		"a tenant that labels its Pod worker":    {caller{elsewhere: true, pod: worker}, none},
		"a tenant that labels its Pod temporal":  {caller{elsewhere: true, pod: temporal}, none},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var reached []int
			for _, port := range []int{7233, 7234, 7243, 8080, 9090} {
				if lets(t, policy, test.from, port) {
					reached = append(reached, port)
				}
			}
			assert.Equal(t, test.want, reached)
		})
	}
}

// The file can be applied where Temporal is.
func TestTheNetworkPolicyNamesNoNamespace(t *testing.T) {
	read := readObjects(t, "deploy/base").find(t, "NetworkPolicy/holdfast-temporal")
	assert.Empty(t, read.GetNamespace())
}
