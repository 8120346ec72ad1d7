package restorespec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy"
)

// Drill is the restore of a namespace's backup into the namespace of a drill.
type Drill struct {
	// From is the tenant's namespace.
	From string
	Mark Mark
	// Allowlist is what the tenants' role may create; nothing is restored without it.
	Allowlist *Allowlist
	Rules     policy.Drills
}

var (
	// drillData are the core kinds that do nothing by themselves.
	drillData = []string{"configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "services"}
	// drillWorkloads are the core kinds that run.
	drillWorkloads = []string{
		"pods", "replicationcontrollers", "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps",
		"cronjobs.batch", "jobs.batch",
	}
)

// Resources are those that the drill restores. Others may act on what is outside of the namespace, or let others act in it.
func (d Drill) Resources() []Served {
	wanted := drillData
	if !d.Rules.WithoutNetworkPolicies { // operators may make Pods, too
		wanted = slices.Concat(drillData, drillWorkloads, d.Rules.Kinds)
	}
	return slices.DeleteFunc(slices.Clone(d.Allowlist.Resources), func(resource Served) bool {
		return !slices.Contains(wanted, resource.String())
	})
}

// Spec returns the spec of the Velero Restore. The resource modifier is the ConfigMap of the name modifier, which holds Modifier.
func (d Drill) Spec(backup, modifier string) velerov1.RestoreSpec {
	none := false
	return velerov1.RestoreSpec{
		BackupName:              backup,
		IncludedNamespaces:      []string{d.From},
		NamespaceMapping:        map[string]string{d.From: d.Mark.Into},
		IncludedResources:       included(d.Resources()),
		ExcludedResources:       excludedFromRestore,
		IncludeClusterResources: &none,
		// No snapshots: a plugin would bring their objects, which are not included, and move their data. Velero restores the data of
		// file systems nevertheless.
		RestorePVs: &none,
		// What a Job does is not done again. Velero would wait for a Pod that is not scheduled, to restore its volumes, and restore
		// nothing else meanwhile.
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: batchv1.JobNameLabel, Operator: metav1.LabelSelectorOpDoesNotExist},
		}},
		ResourceModifier: &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: modifier},
	}
}

// drillGrace is how many seconds a container has to end: a drill does not wait for one that does not.
const drillGrace = 30

// drillTemplates are the kinds that make Pods by a template.
var drillTemplates = []string{
	"replicationcontrollers", "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch",
}

// restoreHooks are the annotations by which a Pod has Velero run something in it.
var restoreHooks = []string{
	"init.hook.restore.velero.io/command", "init.hook.restore.velero.io/container-image",
	"init.hook.restore.velero.io/container-name", "init.hook.restore.velero.io/timeout",
	"post.hook.restore.velero.io/command", "post.hook.restore.velero.io/container",
	"post.hook.restore.velero.io/exec-timeout", "post.hook.restore.velero.io/on-error", "post.hook.restore.velero.io/wait-for-ready",
	"post.hook.restore.velero.io/wait-timeout",
}

// Modifier returns the resource modifier of the drill: everything is marked and judged as if it came from a tenant's location,
// and what would act on its own, reach out, or outlast the drill is tamed.
func (d Drill) Modifier() (string, error) {
	rules := []modifierRule{
		merge("**", `{"metadata":{"finalizers":null,"ownerReferences":null}}`),
		merge("**", `{"metadata":{"annotations":{%s}}}`, d.stripped()),
		merge("pods", `{"spec":%s}`, tamedPod),
		merge("services", `{"spec":{"externalIPs":null}}`),
		merge("serviceaccounts", `{"automountServiceAccountToken":false}`),
		merge("cronjobs.batch", `{"spec":{"suspend":true,"jobTemplate":{"spec":{"template":%s}}}}`, d.template()),
		merge("jobs.batch", `{"spec":{"suspend":true}}`),
		merge("persistentvolumeclaims", `{"spec":{"dataSource":null,"dataSourceRef":null}}`),
	}
	for _, kind := range drillTemplates {
		rules = append(rules, merge(kind, `{"spec":{"template":%s}}`, d.template()))
	}
	for _, kind := range []string{"LoadBalancer", "NodePort"} {
		internal := merge("services", `{"spec":{"type":"ClusterIP","allocateLoadBalancerNodePorts":null,"externalTrafficPolicy":null,`+
			`"healthCheckNodePort":null,"loadBalancerClass":null,"loadBalancerIP":null,"loadBalancerSourceRanges":null}}`)
		internal.Conditions.Matches = []modifierMatch{{"/spec/type", kind}}
		rules = append(rules, internal)
	}
	for _, hook := range restoreHooks {
		rules = append(rules, merge("pods", `{"metadata":{"annotations":{%q:null}}}`, hook))
	}
	for _, class := range slices.Sorted(maps.Keys(d.Rules.StorageClassMapping)) {
		mapped := merge("persistentvolumeclaims", `{"spec":{"storageClassName":%q}}`, d.Rules.StorageClassMapping[class])
		mapped.Conditions.Matches = []modifierMatch{{"/spec/storageClassName", class}}
		rules = append(rules, mapped)
	}
	marked := *d.Allowlist
	marked.Resources = d.Resources()
	return d.Mark.modifier(&marked, rules)
}

// tamedPod is for a Pod's spec: it ends soon, has no token unless it asks for one by a volume, and takes nobody's place on a
// node.
var tamedPod = fmt.Sprintf(`{"terminationGracePeriodSeconds":%d,"automountServiceAccountToken":false,`+
	`"priorityClassName":null,"priority":null,"preemptionPolicy":null}`, drillGrace)

// template is for the template of a Pod.
func (d Drill) template() string {
	return fmt.Sprintf(`{"metadata":{"finalizers":null,"annotations":{%s}},"spec":%s}`, d.stripped(), tamedPod)
}

// actedUpon are annotations by which other controllers copy an object elsewhere, or make it known outside of the namespace.
var actedUpon = slices.Concat(
	keysOf("external-dns.alpha.kubernetes.io/", "hostname", "internal-hostname", "target", "ttl", "access", "endpoints-type",
		"alias", "set-identifier", "controller"),
	keysOf("reflector.v1.k8s.emberstack.com/", "reflection-allowed", "reflection-allowed-namespaces", "reflection-auto-enabled",
		"reflection-auto-namespaces", "reflects"),
	keysOf("replicator.v1.mittwald.de/", "replicate-to", "replicate-to-matching", "replicate-from", "replication-allowed",
		"replication-allowed-namespaces", "replicate-once", "push-to", "push-to-namespaces"),
	keysOf("tailscale.com/", "expose", "hostname", "tailnet-fqdn", "tailnet-ip"),
	keysOf("service.cilium.io/", "global", "shared"),
	[]string{"kubed.appscode.com/sync", "getambassador.io/config"},
)

func keysOf(prefix string, names ...string) (keys []string) {
	for _, name := range names {
		keys = append(keys, prefix+name)
	}
	return keys
}

// stripped is for annotations: it removes those that others act upon, and those of the policy.
func (d Drill) stripped() string {
	keys := slices.Concat(actedUpon, d.Rules.StripAnnotations)
	slices.Sort(keys)
	var fields []string
	for _, key := range slices.Compact(keys) {
		fields = append(fields, fmt.Sprintf("%q:null", key))
	}
	return strings.Join(fields, ",")
}
