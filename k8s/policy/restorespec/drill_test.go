package restorespec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s/policy"
)

func drillOf(rules policy.Drills) Drill {
	return Drill{
		From: "shop", Mark: Mark{Into: "drill-0", OADPNamespace: "openshift-adp", By: "drill-0"}, Rules: rules,
		Allowlist: allowing("configmaps", "secrets", "deployments.apps", "ingresses.networking.k8s.io", "things.example.com", "jobs.batch"),
	}
}

func TestADrillRestoresAnAllowlist(t *testing.T) {
	for title, test := range map[string]struct {
		rules policy.Drills
		want  []string
	}{
		"core kinds":                {policy.Drills{}, []string{"configmaps", "secrets", "deployments.apps", "jobs.batch"}},
		"kinds of the policy":       {policy.Drills{Kinds: []string{"things.example.com"}}, []string{"configmaps", "secrets", "deployments.apps", "things.example.com", "jobs.batch"}},
		"nothing that runs":         {policy.Drills{WithoutNetworkPolicies: true}, []string{"configmaps", "secrets"}},
		"no kind that nobody knows": {policy.Drills{Kinds: []string{"roles.rbac.authorization.k8s.io"}}, []string{"configmaps", "secrets", "deployments.apps", "jobs.batch"}},
	} {
		drill := drillOf(test.rules)
		assert.Equal(t, test.want, namesOf(drill.Resources()), title)
		spec := drill.Spec("nightly-1", "drill-0")
		assert.ElementsMatch(t, test.want, spec.IncludedResources, title)
		assert.Equal(t, []string{"shop"}, spec.IncludedNamespaces)
		assert.Equal(t, map[string]string{"shop": "drill-0"}, spec.NamespaceMapping)
		assert.False(t, *spec.IncludeClusterResources)
		assert.False(t, *spec.RestorePVs, "snapshots bring more than is included")
		pod := labels.Set{"batch.kubernetes.io/job-name": "work"}
		selector, err := metav1.LabelSelectorAsSelector(spec.LabelSelector)
		require.NoError(t, err)
		assert.False(t, selector.Matches(pod), "a Job's Pod")
		assert.True(t, selector.Matches(labels.Set{"app": "web"}))
		assert.Nil(t, spec.RestoreStatus)
	}
	empty := drillOf(policy.Drills{})
	empty.Allowlist = &Allowlist{}
	assert.Equal(t, []string{nothing}, empty.Spec("nightly-1", "drill-0").IncludedResources, "an empty list would mean all")
}

func TestWhatADrillRestoresIsTamed(t *testing.T) {
	text, err := drillOf(policy.Drills{StorageClassMapping: map[string]string{"fast": "slow"}}).Modifier()
	require.NoError(t, err)
	text = strings.ReplaceAll(text, `\"`, `"`) // a patch is a text in JSON
	for _, patch := range []string{
		`{"metadata":{"finalizers":null,"ownerReferences":null}}`, `"type":"ClusterIP"`, `"externalIPs":null`, `{"spec":{"suspend":true}}`,
		`"dataSource":null`, `"dataSourceRef":null`, `"volumeName":null`, `"post.hook.restore.velero.io/command":null`,
		`"init.hook.restore.velero.io/container-image":null`, `{"spec":{"storageClassName":"slow"}}`, `"path":"/metadata/annotations/holdfast.dev~1restored-into"`, `"drill-0`,
		`"holdfast.dev/restored-by":"openshift-adp/drill-0"`, `"holdfast.dev/restored-into":"Not.as.its.folder"`,
	} {
		assert.Contains(t, text, patch)
	}
	assert.Contains(t, text, `"matches":[{"path":"/spec/storageClassName","value":"fast"}]`)
	assert.NotContains(t, text, "ingresses", "no mark lets it through")
}

// mergedInto returns the merge patches of the modifier for a resource, one after another, without those that have conditions.
func mergedInto(t *testing.T, d Drill, resource, object string) map[string]any {
	t.Helper()
	text, err := d.Modifier()
	require.NoError(t, err)
	var modifier struct {
		Rules []modifierRule `json:"resourceModifierRules"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &modifier))
	var merged any
	require.NoError(t, json.Unmarshal([]byte(object), &merged))
	for _, rule := range modifier.Rules {
		if about := rule.Conditions.GroupResource; about != resource && about != "**" || rule.Conditions.LabelSelector != nil ||
			len(rule.Conditions.Matches) > 0 {
			continue
		}
		for _, patch := range rule.MergePatches {
			var changes any
			require.NoError(t, json.Unmarshal([]byte(patch.PatchData), &changes))
			merged = mergePatch(merged, changes)
		}
	}
	return merged.(map[string]any)
}

// mergePatch is that of RFC 7386.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, ok := target.(map[string]any)
	if !ok {
		merged = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(merged, key)
			continue
		}
		merged[key] = mergePatch(merged[key], value)
	}
	return merged
}

func TestPodsOfADrillHaveNoTokenAndNoPriority(t *testing.T) {
	const pod = `{"metadata":{"finalizers":["a/b"],"annotations":{"tailscale.com/expose":"true","kept":"x"}},"spec":{"containers":[],` +
		`"automountServiceAccountToken":true,"priorityClassName":"high","priority":9,"preemptionPolicy":"Never","serviceAccountName":"x"}}`
	for resource, path := range map[string][]string{
		"pods": nil, "replicationcontrollers": {"spec", "template"}, "daemonsets.apps": {"spec", "template"},
		"deployments.apps": {"spec", "template"}, "replicasets.apps": {"spec", "template"}, "statefulsets.apps": {"spec", "template"},
		"jobs.batch": {"spec", "template"}, "cronjobs.batch": {"spec", "jobTemplate", "spec", "template"},
	} {
		object := pod
		for _, field := range slices.Backward(path) {
			object = fmt.Sprintf(`{%q:%s}`, field, object)
		}
		made, found, err := unstructured.NestedMap(mergedInto(t, drillOf(policy.Drills{}), resource, object), path...)
		require.NoError(t, err)
		require.True(t, found, resource)
		assert.Equal(t, map[string]any{
			"containers": []any{}, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": float64(30), "serviceAccountName": "x",
		}, made["spec"], resource)
		meta, _, err := unstructured.NestedMap(made, "metadata")
		require.NoError(t, err)
		assert.NotContains(t, meta, "finalizers", resource)
		assert.Subset(t, meta["annotations"], map[string]any{"kept": "x"}, resource)
		assert.NotContains(t, meta["annotations"], "tailscale.com/expose", resource)
	}
}

func TestAnnotationsThatOthersActUponAreNotRestored(t *testing.T) {
	d := drillOf(policy.Drills{StripAnnotations: []string{"example.com/announce", "tailscale.com/expose"}})
	const object = `{"metadata":{"annotations":{"kept":"x","example.com/announce":"yes","external-dns.alpha.kubernetes.io/hostname":"shop.example.com",` +
		`"reflector.v1.k8s.emberstack.com/reflection-auto-enabled":"true","replicator.v1.mittwald.de/replicate-to":"crew"}}}`
	for _, resource := range []string{"secrets", "services", "things.example.com"} {
		annotations, _, err := unstructured.NestedStringMap(mergedInto(t, d, resource, object), "metadata", "annotations")
		require.NoError(t, err)
		delete(annotations, RestoredIntoAnnotation)
		delete(annotations, RestoredByAnnotation)
		assert.Equal(t, map[string]string{"kept": "x"}, annotations, resource)
	}
}
