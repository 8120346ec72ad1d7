package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/test/deploy/bundle"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// clusterServiceVersion are the fields that say what OLM installs.
type clusterServiceVersion struct {
	Metadata struct{ Name string }
	Spec     struct {
		Version string
		Install struct {
			Spec struct {
				Deployments []struct {
					Name  string
					Label map[string]string
					Spec  appsv1.DeploymentSpec
				}
				ClusterPermissions, Permissions []permission
			}
		}
		CustomResourceDefinitions struct {
			Owned, Required []struct{ Name, Version, Kind string }
		}
	}
}

type permission struct {
	ServiceAccountName string
	Rules              []rbacv1.PolicyRule
}

func readBundle(t *testing.T) (*clusterServiceVersion, objects) {
	t.Helper()
	files, err := filepath.Glob(inCheckout(t, "deploy", "bundle", "manifests", "*.clusterserviceversion.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var csv clusterServiceVersion
	require.NoError(t, yaml.Unmarshal(content, &csv))
	return &csv, readObjects(t, "deploy/bundle/manifests")
}

// Each object of the base is in the bundle, in the ClusterServiceVersion or beside it, or is left out for a reason.
func TestTheBundleIsTheBase(t *testing.T) {
	csv, beside := readBundle(t)
	base := render(t, inCheckout(t, "deploy", "base"))
	for left := range bundle.LeftOut {
		base.find(t, left)
	}
	var want struct {
		beside, deployments []string
		cluster, namespaced []permission
	}
	rules := func(kind, name string) []rbacv1.PolicyRule {
		return into[rbacv1.ClusterRole](t, base.find(t, kind+"/"+name)).Rules
	}
	for _, binding := range base.ofKind("ClusterRoleBinding", "RoleBinding") {
		b := into[rbacv1.RoleBinding](t, binding)
		if bundle.LeftOut[id(binding)] != "" {
			continue
		}
		p := permission{b.Subjects[0].Name, rules(b.RoleRef.Kind, b.RoleRef.Name)}
		if binding.GetKind() == "RoleBinding" {
			want.namespaced = append(want.namespaced, p)
		} else {
			want.cluster = append(want.cluster, p)
		}
	}
	assert.ElementsMatch(t, want.cluster, csv.Spec.Install.Spec.ClusterPermissions)
	assert.ElementsMatch(t, want.namespaced, csv.Spec.Install.Spec.Permissions)
	for _, d := range csv.Spec.Install.Spec.Deployments {
		expected := base.deployment(t, d.Name)
		expected.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name = "holdfast"
		assert.Equal(t, expected.Spec, d.Spec, d.Name)
		assert.Equal(t, expected.Labels, d.Label, d.Name)
		want.deployments = append(want.deployments, "Deployment/"+d.Name)
	}
	assert.ElementsMatch(t, base.ofKind("Deployment").ids(), want.deployments)
	inCSV := regexp.MustCompile(`^(Deployment/.*|(Cluster)?Role(Binding)?/holdfast-(worker|watcher))$`)
	for _, o := range base {
		if bundle.LeftOut[id(o)] != "" || inCSV.MatchString(id(o)) {
			continue
		}
		o = o.DeepCopy()
		o.SetNamespace("")
		assert.Equal(t, o.Object, beside.find(t, id(o)).Object, id(o))
		want.beside = append(want.beside, id(o))
	}
	for _, o := range beside { // what every release of OLM takes
		assert.Contains(t, []string{
			"ClusterServiceVersion", "CustomResourceDefinition", "ClusterRole", "Role", "PodDisruptionBudget",
		}, o.GetKind())
	}
	assert.ElementsMatch(t, append(want.beside, "ClusterServiceVersion/"+csv.Metadata.Name), beside.ids())
	assert.Equal(t, "holdfast.v"+csv.Spec.Version, csv.Metadata.Name)
	assert.Contains(t, readFile(t, "deploy", "chart", "Chart.yaml"), "\nversion: "+csv.Spec.Version+"\n", "of the same release")
}

// A kind has one owner, or OLM installs neither.
func TestTheBundleOwnsOurKindsAlone(t *testing.T) {
	csv, _ := readBundle(t)
	var owned, required []string
	for _, kind := range csv.Spec.CustomResourceDefinitions.Owned {
		owned = append(owned, kind.Name)
		assert.Equal(t, "v1alpha1", kind.Version)
	}
	for _, kind := range csv.Spec.CustomResourceDefinitions.Required {
		required = append(required, kind.Name)
	}
	assert.Equal(t, []string{"backupplans.holdfast.dev", "restoredrills.holdfast.dev"}, owned)
	assert.ElementsMatch(t, []string{
		"nonadminbackups.oadp.openshift.io", "nonadminrestores.oadp.openshift.io", "nonadminbackupstoragelocations.oadp.openshift.io",
		"nonadmindownloadrequests.oadp.openshift.io",
	}, required)
}

func TestCatalogsAcceptTheBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("runs OLM's validators")
	}
	validator, err := tools.Path(t.Context(), tools.OLMValidate)
	require.NoError(t, err)
	validate := func(dir string) (string, error) {
		output, err := exec.CommandContext(t.Context(), validator, dir).CombinedOutput()
		return string(output), err
	}
	output, err := validate(inCheckout(t, "deploy", "bundle"))
	require.NoError(t, err, output)

	broken := t.TempDir()
	require.NoError(t, os.CopyFS(broken, os.DirFS(inCheckout(t, "deploy", "bundle"))))
	kinds, err := filepath.Glob(filepath.Join(broken, "manifests", "backupplans*"))
	require.NoError(t, err)
	require.Len(t, kinds, 1)
	require.NoError(t, os.Remove(kinds[0]))
	output, err = validate(broken)
	require.Error(t, err)
	assert.Contains(t, output, "BackupPlan", "a bundle without a kind that it owns")
}

// What OLM does not install the document has applied.
func TestTheDocumentAppliesWhatTheBundleLeavesOut(t *testing.T) {
	_, section, found := strings.Cut(readFile(t, "docs", "install.md"), "\n## With OLM\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var applied objects
	for _, match := range regexp.MustCompile(`-f (deploy/(?:crds|rbac)/\S+)`).FindAllStringSubmatch(section, -1) {
		read, err := env.ReadObjects([]byte(readFile(t, match[1])))
		require.NoError(t, err)
		applied = append(applied, read...)
	}
	var want []string
	for left, reason := range bundle.LeftOut {
		if strings.Contains(reason, "applied") {
			want = append(want, left)
		}
	}
	require.Len(t, want, 9)
	assert.ElementsMatch(t, want, applied.ids())
}
