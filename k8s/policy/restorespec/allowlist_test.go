package restorespec

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// servedAs is a resource of a namespace with which everything can be done.
func servedAs(name string) Served {
	return Served{
		GroupResource: schema.ParseGroupResource(name), Kind: "Kind", Versions: []string{"v1"}, Namespaced: true,
		Verbs: []string{"create", "get", "list", "watch"},
	}
}

func namesOf(resources []Served) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	return names
}

func allowing(names ...string) *Allowlist {
	allowlist := &Allowlist{ClusterRole: "edit"}
	for _, name := range names {
		allowlist.Resources = append(allowlist.Resources, servedAs(name))
	}
	return allowlist
}

func TestOnlyWhatARoleMayCreateComesFromATenantsLocation(t *testing.T) {
	var served []Served
	for _, name := range []string{
		"configmaps", "services", "events", "endpoints", "resourcequotas", "limitranges", "deployments.apps",
		"services.serving.example.com", "events.events.k8s.io", "networkpolicies.networking.k8s.io",
		"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "rolebindings.x",
		"endpointslices.discovery.k8s.io", "nonadminbackups.oadp.openshift.io", "backups.velero.io",
		"foundationdbbackups.fdb.holdfast.dev", "backupplans.holdfast.dev", "applications.argoproj.io", "things.example.com",
		"buildconfigs.build.openshift.io", "foundationdbrestores.fdb.holdfast.dev", "drills.holdfast.dev",
	} {
		served = append(served, servedAs(name))
	}
	clusterScoped, readOnly, unwatched := servedAs("configmaps.cluster.example.com"), servedAs("deployments.metrics.k8s.io"), servedAs("bindings")
	clusterScoped.Namespaced, readOnly.Verbs, unwatched.Verbs = false, []string{"get", "list"}, []string{"create"}
	served = append(served, clusterScoped, readOnly, unwatched)
	rule := func(verb, group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
	}
	knative := Shadowed{served[1].GroupResource, served[7].GroupResource}
	byName := rule("create", "", "configmaps")
	byName.ResourceNames = []string{"one"}
	for name, test := range map[string]struct {
		rules    []rbacv1.PolicyRule
		want     []string
		shadowed []Shadowed
	}{
		"a role that may do everything": {
			[]rbacv1.PolicyRule{rule("*", "*", "*")},
			[]string{
				"applications.argoproj.io", "backupplans.holdfast.dev", "configmaps", "deployments.apps",
				"foundationdbbackups.fdb.holdfast.dev", "services", "services.serving.example.com", "things.example.com",
			},
			nil,
		},
		"a role that may look":             {[]rbacv1.PolicyRule{rule("get", "*", "*")}, nil, nil},
		"a role that may create some":      {[]rbacv1.PolicyRule{rule("create", "", "configmaps"), rule("create", "apps", "*")}, []string{"configmaps", "deployments.apps"}, nil},
		"a role for one of two namesakes":  {[]rbacv1.PolicyRule{rule("create", "", "services")}, nil, []Shadowed{knative}},
		"a role for both namesakes":        {[]rbacv1.PolicyRule{rule("create", "*", "services")}, []string{"services", "services.serving.example.com"}, nil},
		"a role for one object":            {[]rbacv1.PolicyRule{byName}, nil, nil},
		"a role for what is never brought": {[]rbacv1.PolicyRule{rule("create", "", "resourcequotas"), rule("*", "rbac.authorization.k8s.io", "*"), rule("*", "x", "*")}, nil, nil},
		"no rule":                          {nil, nil, nil},
	} {
		allowed, shadowed := Allowed(test.rules, served)
		assert.Equal(t, test.want, namesOf(allowed), name)
		assert.Equal(t, test.shadowed, shadowed, name)
	}
}

func TestATenantChoosesAmongWhatIsAllowed(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	allowlist := allowing("configmaps", "deployments.apps", "secrets")
	allowlist.Names = mapper
	for name, test := range map[string]struct {
		included, excluded, want []string
	}{
		"all":                       {nil, nil, []string{"configmaps", "deployments.apps", "secrets"}},
		"all, by a star":            {[]string{"*"}, nil, []string{"configmaps", "deployments.apps", "secrets"}},
		"by plural":                 {[]string{"deployments", "configmaps"}, nil, []string{"configmaps", "deployments.apps"}},
		"by kind and group":         {[]string{"deployment.apps", "configmap"}, nil, []string{"configmaps", "deployments.apps"}},
		"what is not allowed":       {[]string{"rolebindings", "configmaps"}, nil, []string{"configmaps"}},
		"only what is not allowed":  {[]string{"rolebindings"}, nil, nil},
		"what nobody knows":         {[]string{"deployments.x", "secrets"}, nil, []string{"secrets"}},
		"all but some":              {nil, []string{"deployments", "secrets"}, []string{"configmaps"}},
		"all but all":               {nil, []string{"deployments", "secrets", "configmaps"}, nil},
		"some but one of those":     {[]string{"configmaps", "secrets"}, []string{"configmap"}, []string{"secrets"}},
		"what is excluded by group": {nil, []string{"deployments.apps"}, []string{"configmaps", "secrets"}},
	} {
		given := &velerov1.RestoreSpec{BackupName: "nightly", IncludedResources: test.included, ExcludedResources: test.excluded}
		assert.ElementsMatch(t, test.want, namesOf(allowlist.Chosen(given)), name)
		source := takenInOwnStore()
		source.Allowlist = allowlist
		built := Build(restoreOf(given), source, policy.Policy{}, "ours")
		err := Validate(restoreOf(given), source, policy.Policy{})
		if len(test.want) == 0 {
			var verdict *check.InvalidSpecError
			require.ErrorAs(t, err, &verdict, name)
			assert.True(t, verdict.External, "the role may come to allow it")
			assert.Equal(t, []string{"nothing.holdfast.dev"}, built.IncludedResources, "an empty list would mean all")
			continue
		}
		require.NoError(t, err, name)
		assert.ElementsMatch(t, test.want, built.IncludedResources, name)
		for _, excluded := range built.ExcludedResources {
			assert.NotContains(t, built.IncludedResources, excluded, "Velero refuses that")
		}
	}
}

func TestNothingComesFromATenantsLocationWhileNobodyKnowsWhatMay(t *testing.T) {
	source := takenInOwnStore()
	source.Allowlist = &Allowlist{Problem: "the API server does not say what it serves in metrics.k8s.io/v1beta1"}
	var verdict *check.InvalidSpecError
	require.ErrorAs(t, Validate(restoreOf(&velerov1.RestoreSpec{BackupName: "nightly"}), source, policy.Policy{}), &verdict)
	assert.True(t, verdict.External)
	assert.Equal(t, "nothing can be restored from a NonAdminBackupStorageLocation now: "+source.Allowlist.Problem, verdict.Message)
	source = taken()
	source.Allowlist = &Allowlist{Problem: "none of its business"}
	require.NoError(t, Validate(restoreOf(&velerov1.RestoreSpec{BackupName: "nightly"}), source, policy.Policy{}))
}

func TestNoStatusComesFromATenantsLocation(t *testing.T) {
	all := &velerov1.RestoreStatusSpec{IncludedResources: []string{"*"}}
	for _, p := range []policy.Policy{{}, {EnforceRestoreSpec: &velerov1.RestoreSpec{RestoreStatus: all}}} {
		given := restoreOf(&velerov1.RestoreSpec{BackupName: "nightly", RestoreStatus: all})
		assert.Nil(t, Build(given, takenInOwnStore(), p, "ours").RestoreStatus)
		assert.Equal(t, all, Build(given, taken(), p, "ours").RestoreStatus)
	}
}

func TestAnUpdateLeavesRolesAndLimitsAsTheyAre(t *testing.T) {
	const refused = "NonAdminRestore spec.restoreSpec.includedResources is invalid: must not contain resourcequotas " +
		"with existingResourcePolicy update, which leaves roles, limits and plans as they are"
	update := velerov1.RestoreSpec{BackupName: "nightly", ExistingResourcePolicy: velerov1.PolicyTypeUpdate}
	limits := []string{"backupplans.holdfast.dev", "foundationdbbackups.fdb.holdfast.dev", "rolebindings.rbac.authorization.k8s.io", "resourcequotas", "limitranges", "networkpolicies.networking.k8s.io"}
	for _, source := range []Source{taken(), takenInOwnStore()} {
		assert.Subset(t, Build(restoreOf(&update), source, policy.Policy{}, "ours").ExcludedResources, limits)
	}
	enforced := policy.Policy{EnforceRestoreSpec: &velerov1.RestoreSpec{ExistingResourcePolicy: velerov1.PolicyTypeUpdate}}
	plain := restoreOf(&velerov1.RestoreSpec{BackupName: "nightly"})
	assert.Subset(t, Build(plain, taken(), enforced, "ours").ExcludedResources, limits)
	assert.NotContains(t, Build(plain, taken(), policy.Policy{}, "ours").ExcludedResources, limits[0])

	update.IncludedResources = []string{"resourcequotas"}
	require.EqualError(t, Validate(restoreOf(&update), taken(), policy.Policy{}), refused)
	named := restoreOf(&velerov1.RestoreSpec{BackupName: "nightly", IncludedResources: update.IncludedResources})
	require.EqualError(t, Validate(named, taken(), enforced), refused)
	require.NoError(t, Validate(named, taken(), policy.Policy{}))
}

// Velero refuses a spec that includes and excludes the same.
func TestAnUpdateFromATenantsLocationBringsNoPlan(t *testing.T) {
	source := takenInOwnStore()
	source.Allowlist = allowing("backupplans.holdfast.dev", "configmaps")
	nar := restoreOf(&velerov1.RestoreSpec{BackupName: "nightly"})
	assert.Equal(t, []string{"backupplans.holdfast.dev", "configmaps"}, Build(nar, source, policy.Policy{}, "ours").IncludedResources)
	nar.Spec.RestoreSpec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
	built := Build(nar, source, policy.Policy{}, "ours")
	assert.Equal(t, []string{"configmaps"}, built.IncludedResources)
	assert.True(t, SkippedByUpdate(&built, schema.ParseGroupResource("backupplans.holdfast.dev")))
	assert.False(t, SkippedByUpdate(&built, schema.ParseGroupResource("configmaps")))
	nar.Spec.RestoreSpec.IncludedResources = []string{"backupplans.holdfast.dev"}
	require.ErrorContains(t, Validate(nar, source, policy.Policy{}), "selects nothing that can be restored")
}

// The API server refuses by itself what never comes from a tenant's location.
func TestTheAdmissionPolicyRefusesWhatNeverComes(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/rbac/restores.yaml")
	require.NoError(t, err)
	for _, name := range slices.Concat(neverGroups, rbacResources, limitResources, routeResources, check.Configuration) {
		assert.Contains(t, string(manifest), "'"+name+"'", "in the list of ValidatingAdmissionPolicy holdfast-restores")
	}
}
