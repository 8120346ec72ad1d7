package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/test/env"
)

// No Namespace (it is Velero's: deleting the base must leave it) and no Secret.
func TestBaseHoldsWhatAnInstallationNeedsAndNothingElse(t *testing.T) {
	assert.ElementsMatch(t, []string{
		"CustomResourceDefinition/nonadminbackups.oadp.openshift.io",
		"CustomResourceDefinition/nonadminbackupstoragelocations.oadp.openshift.io",
		"CustomResourceDefinition/nonadminbackupstoragelocationapprovalrequests.oadp.openshift.io",
		"CustomResourceDefinition/nonadmindownloadrequests.oadp.openshift.io",
		"CustomResourceDefinition/nonadminrestores.oadp.openshift.io",
		"ServiceAccount/holdfast-worker", "ServiceAccount/holdfast-watcher",
		"ClusterRole/holdfast-worker", "ClusterRole/holdfast-watcher",
		"Role/holdfast-worker", "Role/holdfast-watcher",
		"ClusterRoleBinding/holdfast-worker", "ClusterRoleBinding/holdfast-watcher",
		"RoleBinding/holdfast-worker", "RoleBinding/holdfast-watcher",
		"ClusterRole/holdfast-tenant-edit", "ClusterRole/holdfast-tenant-view",
		"Role/holdfast-approver",
		"ValidatingAdmissionPolicy/holdfast-decided-by", "ValidatingAdmissionPolicyBinding/holdfast-decided-by",
		"ServiceAccount/holdfast-restores", "ClusterRoleBinding/holdfast-restores",
		"ValidatingAdmissionPolicy/holdfast-restores", "ValidatingAdmissionPolicyBinding/holdfast-restores",
		"CustomResourceDefinition/backupplans.holdfast.dev", "CustomResourceDefinition/restoredrills.holdfast.dev",
		"ValidatingAdmissionPolicy/holdfast-default-plans", "ValidatingAdmissionPolicyBinding/holdfast-default-plans",
		"NetworkPolicy/holdfast-temporal",
		"ConfigMap/holdfast",
		"Deployment/holdfast-worker", "Deployment/holdfast-watcher",
		"PodDisruptionBudget/holdfast-worker", "PodDisruptionBudget/holdfast-watcher",
	}, render(t, inCheckout(t, "deploy", "base")).ids())
}

// What a new file of `make generate` would otherwise miss.
func TestKustomizationsListEveryFileOfTheirFolder(t *testing.T) {
	for _, dir := range []string{"crds", "rbac", "components/fdb/crds", "components/fdb/rbac", "components/drills/rbac"} {
		t.Run(dir, func(t *testing.T) {
			var kustomization struct{ Resources []string }
			require.NoError(t, yaml.Unmarshal([]byte(readFile(t, "deploy", dir, "Kustomization")), &kustomization))
			entries, err := os.ReadDir(inCheckout(t, "deploy", dir))
			require.NoError(t, err)
			var files []string
			for _, entry := range entries {
				if entry.Name() != "Kustomization" {
					files = append(files, entry.Name())
				}
			}
			assert.ElementsMatch(t, files, kustomization.Resources)
		})
	}
}

// addedNamespace are kinds without a namespace to which kustomize gives one, because it does not know them. The API server
// drops it.
var addedNamespace = []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// The same rights, whichever way somebody installs them.
func TestRenderedRightsAreThoseOfDeployRBAC(t *testing.T) {
	kinds := []string{
		"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}
	base := render(t, inCheckout(t, "deploy", "base")).ofKind(kinds...)
	byHand := readObjects(t, "deploy/rbac")
	require.ElementsMatch(t, byHand.ids(), base.ids())
	for _, want := range byHand {
		got := base.find(t, id(want))
		if !slices.Contains(addedNamespace, want.GetKind()) {
			assert.Equal(t, want.GetNamespace(), got.GetNamespace(), id(want))
		}
		for label, value := range want.GetLabels() {
			assert.Equal(t, value, got.GetLabels()[label], id(want))
		}
		for _, field := range []string{"rules", "roleRef", "subjects", "automountServiceAccountToken", "aggregationRule", "spec"} {
			assert.Equal(t, want.Object[field], got.Object[field], "%s of %s", field, id(want))
		}
	}
}

// Who may only look at a namespace reads no Secrets there, and none through a download request's signed URL.
func TestWhoMayViewOpensNoBackup(t *testing.T) {
	all := renderOverlay(t, withFDB)
	own := []string{"backupplans", "restoredrills"}
	tenants := []string{"nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations"}
	look, change := []string{"get", "list", "watch"}, []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	of := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	for role, want := range map[string][]rbacv1.PolicyRule{
		"ClusterRole/holdfast-tenant-view": {of("oadp.openshift.io", look, tenants...), of("holdfast.dev", look, own...)},
		"ClusterRole/holdfast-tenant-edit": {
			of("oadp.openshift.io", change, append(slices.Clone(tenants), "nonadmindownloadrequests")...),
			of("holdfast.dev", change, own...),
		},
		"ClusterRole/holdfast-tenant-fdb-view": {of("fdb.holdfast.dev", look, "foundationdbbackups", "foundationdbdrills", "foundationdbrestores")},
		"ClusterRole/holdfast-tenant-fdb-edit": {of("fdb.holdfast.dev", change, "foundationdbbackups", "foundationdbdrills", "foundationdbrestores")},
	} {
		assert.Equal(t, want, into[rbacv1.ClusterRole](t, all.find(t, role)).Rules, role)
	}
}

// Each process runs as its own account, and each account has its own two roles and no other.
func TestEachProcessHasItsOwnRightsAlone(t *testing.T) {
	base := map[string][]string{
		workerName:  {"ClusterRoleBinding of ClusterRole/holdfast-worker", "RoleBinding of Role/holdfast-worker"},
		watcherName: {"ClusterRoleBinding of ClusterRole/holdfast-watcher", "RoleBinding of Role/holdfast-watcher"},
	}
	withFoundationDB := map[string][]string{
		workerName:  base[workerName],
		watcherName: append(slices.Clone(base[watcherName]), "ClusterRoleBinding of ClusterRole/holdfast-watcher-fdb"),
		fdbName:     {"ClusterRoleBinding of ClusterRole/holdfast-fdb"},
	}
	secrets := map[string][]string{
		"ClusterRole/holdfast-worker":  {"get"},                               // the one that a storage location names
		"ClusterRole/holdfast-watcher": {"list", "watch"},                     // of which it takes the metadata
		"Role/holdfast-worker":         {"create", "delete", "list", "patch"}, // of the copies; getting them is in the other
	}
	secretsWithFoundationDB := maps.Clone(secrets)
	secretsWithFoundationDB["ClusterRole/holdfast-fdb"] = []string{"get"} // credentials of a store, certificates of a database
	tests := map[string]struct {
		all            objects
		bound, secrets map[string][]string
	}{
		"base":              {render(t, inCheckout(t, "deploy", "base")), base, secrets},
		"another namespace": {render(t, inCheckout(t, "deploy", "overlays", "example")), base, secrets},
		"FoundationDB":      {renderOverlay(t, withFDB), withFoundationDB, secretsWithFoundationDB},
		"FoundationDB in another namespace": {
			renderOverlay(t, "namespace: velero\n"+withFDB), withFoundationDB, secretsWithFoundationDB,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			for name, bound := range test.bound {
				deployment := test.all.deployment(t, name)
				account := into[corev1.ServiceAccount](t,
					test.all.find(t, "ServiceAccount/"+deployment.Spec.Template.Spec.ServiceAccountName))
				assert.Equal(t, name, account.Name)
				assert.Equal(t, deployment.Namespace, account.Namespace)
				assert.ElementsMatch(t, bound, boundTo(t, test.all, account))
			}
			assert.Equal(t, test.secrets, rightsToSecrets(t, test.all))
		})
	}
}

// boundTo lists the bindings of an account.
func boundTo(t *testing.T, all objects, account *corev1.ServiceAccount) []string {
	t.Helper()
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	var bound []string
	for _, o := range all.ofKind("ClusterRoleBinding", "RoleBinding") {
		binding := into[rbacv1.RoleBinding](t, o) // the same fields as a ClusterRoleBinding
		if slices.Equal(binding.Subjects, want) {
			bound = append(bound, o.GetKind()+" of "+binding.RoleRef.Kind+"/"+binding.RoleRef.Name)
		}
	}
	return bound
}

// rightsToSecrets lists what each role may do with Secrets. None may do everything.
func rightsToSecrets(t *testing.T, all objects) map[string][]string {
	t.Helper()
	secrets := map[string][]string{}
	for _, o := range all.ofKind("ClusterRole", "Role") {
		for _, rule := range into[rbacv1.ClusterRole](t, o).Rules {
			granted := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
			assert.NotContains(t, granted, "*", id(o))
			if slices.Contains(rule.Resources, "secrets") {
				secrets[id(o)] = append(secrets[id(o)], rule.Verbs...)
			}
		}
	}
	return secrets
}

func TestOneLineMovesEverythingToAnotherNamespace(t *testing.T) {
	const elsewhere = "backup-system"
	all := renderOverlay(t, "namespace: "+elsewhere+"\nresources: [BASE/base]\ncomponents: [BASE/components/pod-monitor]\n")
	clusterWide := []string{"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
	for _, o := range all {
		if slices.Contains(clusterWide, o.GetKind()) {
			assert.Empty(t, o.GetNamespace(), id(o))
		} else {
			assert.Equal(t, elsewhere, o.GetNamespace(), id(o))
		}
		if o.GetKind() != "CustomResourceDefinition" { // their descriptions may name it
			assert.NotContains(t, texts(o.Object), env.OADPNamespace, id(o))
		}
	}
	for _, name := range []string{workerName, watcherName} {
		container := all.deployment(t, name).Spec.Template.Spec.Containers[0]
		assert.Contains(t, container.Env, corev1.EnvVar{Name: "HOLDFAST_OADP_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
		}}, "the processes look where they run")
	}
}

// texts returns every text in a value, as deep as it goes.
func texts(value any) []string {
	var found []string
	switch v := value.(type) {
	case string:
		found = append(found, v)
	case []any:
		for _, entry := range v {
			found = append(found, texts(entry)...)
		}
	case map[string]any:
		for _, entry := range v {
			found = append(found, texts(entry)...)
		}
	}
	return found
}

// Group holdfast.dev is nobody else's: its kinds stay.
func TestWithoutCRDsIsTheBaseButForOADPs(t *testing.T) {
	base := render(t, inCheckout(t, "deploy", "base"))
	rest := slices.DeleteFunc(slices.Clone(base), oadps)
	assert.Len(t, base, len(rest)+4)
	assert.ElementsMatch(t, rest, renderOverlay(t, "resources: [BASE/base]\ncomponents: [BASE/components/without-crds]\n"))
}

// What operators may change of the judgement of restores is at the head of the policy, in the order of docs/operators.md.
func TestTheSwitchesOfRestoresCanBeChangedInAnOverlay(t *testing.T) {
	_, rest, found := strings.Cut(readFile(t, "docs", "operators.md"), "```yaml\npatches:\n  - target: {kind: ValidatingAdmissionPolicy")
	require.True(t, found)
	patch, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	policy := func(all objects) admissionregistrationv1.ValidatingAdmissionPolicySpec {
		return into[admissionregistrationv1.ValidatingAdmissionPolicy](t, all.find(t, "ValidatingAdmissionPolicy/holdfast-restores")).Spec
	}
	want := policy(render(t, inCheckout(t, "deploy", "base")))
	var names []string
	for _, variable := range want.Variables[:4] {
		names = append(names, variable.Name)
	}
	assert.Equal(t, []string{
		"allowVolumeSnapshotContents", "allowSnapshotSecrets", "defaultPodSecurityLevel", "securityContextConstraints",
	}, names)
	want.Variables[0].Expression = "true"
	assert.Equal(t, want, policy(renderOverlay(t, "resources: [BASE/base]\npatches:\n  - target: {kind: ValidatingAdmissionPolicy"+patch)))
}

// The service account that the API server asks about moves with Velero's namespace: the policy reads it from the mark.
func TestTheTenantsStandInIsBoundInVelerosNamespace(t *testing.T) {
	for _, namespace := range []string{env.OADPNamespace, "velero"} {
		all := renderOverlay(t, "namespace: "+namespace+"\nresources: [BASE/base]\n")
		assert.Equal(t, namespace, all.find(t, "ServiceAccount/holdfast-restores").GetNamespace())
		binding := into[rbacv1.ClusterRoleBinding](t, all.find(t, "ClusterRoleBinding/holdfast-restores"))
		assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "holdfast-restores", Namespace: namespace}}, binding.Subjects)
		assert.NotContains(t, fmt.Sprint(all.find(t, "ValidatingAdmissionPolicy/holdfast-restores").Object["spec"]), env.OADPNamespace)
	}
}

// The environment is read at start, so a setting that changes must change the Pods.
func TestAChangedSettingIsRolledOut(t *testing.T) {
	base := render(t, inCheckout(t, "deploy", "base"))
	example := render(t, inCheckout(t, "deploy", "overlays", "example"))
	assert.NotEqual(t, base.settings(t).Name, example.settings(t).Name)
	for _, all := range []objects{base, example} {
		for _, name := range []string{workerName, watcherName} {
			container := all.deployment(t, name).Spec.Template.Spec.Containers[0]
			require.Len(t, container.EnvFrom, 1)
			assert.Equal(t, all.settings(t).Name, container.EnvFrom[0].ConfigMapRef.Name)
		}
	}
}

func TestTheExampleSetsTheImageOfBothProcesses(t *testing.T) {
	all := render(t, inCheckout(t, "deploy", "overlays", "example"))
	for _, name := range []string{workerName, watcherName} {
		assert.Equal(t, "registry.example.com/holdfast:v0.1.0", all.deployment(t, name).Spec.Template.Spec.Containers[0].Image)
	}
}

func TestSelectorsFindTheirPodsAndNoOthers(t *testing.T) {
	all := renderOverlay(t, "resources: [BASE/base]\ncomponents: [BASE/components/pod-monitor]\n")
	for _, name := range []string{workerName, watcherName} {
		labels := all.deployment(t, name).Spec.Template.Labels
		own := map[string]string{"app.kubernetes.io/name": name}
		assert.Equal(t, name, labels["app.kubernetes.io/name"])
		assert.Equal(t, own, all.deployment(t, name).Spec.Selector.MatchLabels)
		budget := into[policyv1.PodDisruptionBudget](t, all.find(t, "PodDisruptionBudget/"+name))
		assert.Equal(t, own, budget.Spec.Selector.MatchLabels)
		monitored, _, err := unstructured.NestedStringMap(all.find(t, "PodMonitor/holdfast").Object, "spec", "selector", "matchLabels")
		require.NoError(t, err)
		require.NotEmpty(t, monitored)
		for label, value := range monitored {
			assert.Equal(t, value, labels[label])
		}
	}
	endpoints, _, err := unstructured.NestedSlice(all.find(t, "PodMonitor/holdfast").Object, "spec", "podMetricsEndpoints")
	require.NoError(t, err)
	assert.Equal(t, []any{map[string]any{"port": "metrics"}}, endpoints)
}

// kubectl -k refuses files outside of a kustomization's folder; every folder here stands for itself.
func TestEveryKustomizationRenders(t *testing.T) {
	found := 0
	err := filepath.WalkDir(inCheckout(t, "deploy"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !strings.EqualFold(strings.TrimSuffix(entry.Name(), ".yaml"), "kustomization") ||
			strings.Contains(path, "components") {
			return err
		}
		found++
		assert.NotEmpty(t, render(t, filepath.Dir(path)), path)
		return nil
	})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, found, 4)
}
