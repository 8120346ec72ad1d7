package backupspec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

// Every pair of a filter that the administrator enforces and one of the tenant's: Velero takes what is built, or the tenant is told
// which field it is. test/e2e compares BadFilters with Velero.
func TestNoEnforcedFilterMakesASpecThatVeleroRefuses(t *testing.T) {
	filters := map[string]velerov1.BackupSpec{
		"includedResources":                {IncludedResources: []string{"pods"}},
		"includedResources all":            {IncludedResources: []string{"*"}},
		"excludedResources":                {ExcludedResources: []string{"pods"}},
		"excludedResources other":          {ExcludedResources: []string{"secrets"}},
		"includeClusterResources":          {IncludeClusterResources: new(false)},
		"includedNamespaceScopedResources": {IncludedNamespaceScopedResources: []string{"pods"}},
		"excludedNamespaceScopedResources": {ExcludedNamespaceScopedResources: []string{"pods"}},
		"excludedClusterScopedResources":   {ExcludedClusterScopedResources: []string{"nodes"}},
		"all cluster-scoped kinds":         {ExcludedClusterScopedResources: []string{"*"}},
		"labelSelector":                    {LabelSelector: &metav1.LabelSelector{}},
		"orLabelSelectors":                 {OrLabelSelectors: []*metav1.LabelSelector{{}, {}}},
	}
	refused := map[string]string{}
	for own, given := range filters {
		for name, enforced := range filters {
			p := policy.Policy{EnforceBackupSpec: &enforced}
			nab := policytest.BackupOf(&given)
			_, err := Validate(t.Context(), readerOf(t), policytest.OADPNamespace, nab, p)
			built := Build(nab, p, "")
			pair := fmt.Sprintf("%s, enforced %s", own, name)
			requireConfined(t, built)
			var verdict *check.InvalidSpecError
			if err == nil {
				assert.Empty(t, BadFilters(&built), pair)
			} else if assert.ErrorAs(t, err, &verdict, pair) {
				assert.True(t, verdict.External, "the administrator can mend it")
				refused[pair] = verdict.Message
			}
		}
	}
	assert.Equal(t, "the administrator enforces spec.backupSpec.excludedResources, with which Velero rejects this spec: "+
		"includedNamespaceScopedResources and excludedNamespaceScopedResources both have pods",
		refused["includedNamespaceScopedResources, enforced excludedResources"])
	assert.Equal(t, "the administrator enforces spec.backupSpec.includedResources, with which Velero rejects this spec: "+
		"filters by kind (includedResources, excludedResources, includeClusterResources) and by scope cannot be used together",
		refused["excludedClusterScopedResources, enforced includedResources"])
	assert.Contains(t, refused["orLabelSelectors, enforced labelSelector"], "labelSelector and orLabelSelectors")
	assert.NotContains(t, refused, "includedNamespaceScopedResources, enforced excludedResources other")
	assert.NotContains(t, refused, "includedNamespaceScopedResources, enforced includeClusterResources")
}

func TestWhatIsExcludedByKindIsExcludedByScopeToo(t *testing.T) {
	spec := &velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"configmaps"}}
	p := policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{
		ExcludedResources: []string{"secrets", "nodes"}, IncludeClusterResources: new(false),
	}}
	built := Build(policytest.BackupOf(spec), p, "")
	assert.Empty(t, built.ExcludedResources)
	assert.Nil(t, built.IncludeClusterResources)
	assert.Equal(t, []string{"configmaps"}, built.IncludedNamespaceScopedResources)
	assert.Subset(t, built.ExcludedNamespaceScopedResources, []string{"secrets", "nodes"}, "Velero leaves out kinds of the other scope")
	assert.Equal(t, []string{"*"}, built.ExcludedClusterScopedResources)
}

// What is wrong with a tenant's filters alone is Velero's to say, as without a policy.
func TestATenantsOwnMixtureIsLeftToVelero(t *testing.T) {
	spec := &velerov1.BackupSpec{ExcludedResources: []string{"pods"}, ExcludedClusterScopedResources: []string{"nodes"}}
	p := policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: new(false)}}
	require.NoError(t, verdictOn(t, readerOf(t), policytest.BackupOf(spec), p))
	built := Build(policytest.BackupOf(spec), p, "")
	assert.NotEmpty(t, BadFilters(&built))
}
