package namespaces

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// limitsName is the name of what limits a drill's namespace. ValidatingAdmissionPolicy holdfast-drills takes no other.
const limitsName = "holdfast-drill"

// dnsPorts are those of cluster DNS: 5353 is OpenShift's.
var dnsPorts = []int32{53, 5353}

// dnsNamespaces are those in which cluster DNS runs.
var dnsNamespaces = []string{"kube-system", "openshift-dns"}

// limits are what a namespace of a drill has before anything is restored into it: a bound for what it costs, defaults for
// containers that say nothing, and no traffic but within the namespace and to cluster DNS.
func limits(in contract.DrillNamespace) []client.Object {
	meta := metav1.ObjectMeta{
		Namespace: in.Name, Name: limitsName, Labels: map[string]string{holdfastv1alpha1.LabelDrill: in.Ref.UID},
	}
	quota := &corev1.ResourceQuota{ObjectMeta: meta, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for _, name := range slices.Sorted(maps.Keys(in.Quota)) {
		if limit, err := resource.ParseQuantity(in.Quota[name]); err == nil { // the policy was read strictly
			quota.Spec.Hard[corev1.ResourceName(name)] = limit
		}
	}
	defaults := &corev1.LimitRange{ObjectMeta: meta, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: shares(quota.Spec.Hard),
		DefaultRequest: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("16Mi"),
		},
	}}}}
	within := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
	traffic := &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{within}}},
		Egress: []networkingv1.NetworkPolicyEgressRule{
			{To: []networkingv1.NetworkPolicyPeer{within}}, {To: dnsPeers(in.DNS), Ports: dns()},
		},
	}}
	return []client.Object{traffic, quota, defaults}
}

// limited are the resources for which a container without a limit gets one.
var limited = map[corev1.ResourceName]corev1.ResourceName{
	corev1.ResourceCPU:              corev1.ResourceLimitsCPU,
	corev1.ResourceMemory:           corev1.ResourceLimitsMemory,
	corev1.ResourceEphemeralStorage: corev1.ResourceLimitsEphemeralStorage,
}

// leastShares are the limits that a container gets at least: no smaller one than it requests by default.
var leastShares = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	corev1.ResourceEphemeralStorage: resource.MustParse("64Mi"),
}

// shares are the limits of a container that has none: what the quota leaves each of as many Pods as there may be. A quota of
// limits admits no Pod without any.
func shares(quota corev1.ResourceList) corev1.ResourceList {
	shares := corev1.ResourceList{}
	for name, bound := range limited {
		whole, ok := quota[bound]
		if !ok {
			continue
		}
		share := resource.NewMilliQuantity(whole.MilliValue()/max(quota.Pods().Value(), 1), whole.Format)
		if name != corev1.ResourceCPU {
			share = resource.NewQuantity(whole.Value()/max(quota.Pods().Value(), 1), whole.Format)
		}
		if least := leastShares[name]; share.Cmp(least) < 0 {
			*share = least
		}
		shares[name] = *share
	}
	return shares
}

// nodeLocalDNS is where NodeLocal DNSCache listens on each node by default: no selector matches that.
const nodeLocalDNS = "169.254.20.10/32"

func dnsPeers(more []string) (peers []networkingv1.NetworkPolicyPeer) {
	for _, block := range append([]string{nodeLocalDNS}, more...) {
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: block}})
	}
	for _, name := range dnsNamespaces {
		peers = append(peers, networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: name},
		}})
	}
	return peers
}

func dns() (ports []networkingv1.NetworkPolicyPort) {
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		for _, number := range dnsPorts {
			port := intstr.FromInt32(number)
			ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port})
		}
	}
	return ports
}
