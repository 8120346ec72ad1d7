package restorespec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/k8s/policy"
)

// besideKnative is the allowlist of a role that may create Services of the core group, and none of Knative's.
func besideKnative() *Allowlist {
	allowlist := &Allowlist{ClusterRole: "edit"}
	allowlist.Resources, allowlist.Shadowed = Allowed([]rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"*"}},
		{Verbs: []string{"*"}, APIGroups: []string{"postgresql.cnpg.io"}, Resources: []string{"*"}},
	}, []Served{
		servedAs("services"), servedAs("services.serving.knative.dev"), servedAs("configmaps"), servedAs("backups.velero.io"),
		servedAs("backups.postgresql.cnpg.io"),
	})
	return allowlist
}

func TestAVeleroRestoreNamesWhatItLeavesOutForANamesake(t *testing.T) {
	source := takenInOwnStore()
	source.Allowlist = besideKnative()
	of := func(spec velerov1.RestoreSpec) map[string]string {
		return ReadShadowed(ShadowedBy(restoreOf(&spec), source, policy.Policy{}))
	}
	assert.Equal(t, map[string]string{
		"services": "services.serving.knative.dev", "backups.postgresql.cnpg.io": "backups.velero.io",
	}, of(velerov1.RestoreSpec{}))
	assert.Equal(t, map[string]string{"services": "services.serving.knative.dev"},
		of(velerov1.RestoreSpec{ExcludedResources: []string{"backups.postgresql.cnpg.io"}}))
	assert.Empty(t, of(velerov1.RestoreSpec{IncludedResources: []string{"configmaps"}}), "nobody asked for it")
	source.Location = taken().Location
	assert.Empty(t, of(velerov1.RestoreSpec{}), "from an administrator's location everything comes")
}

func TestAnAnnotationNamesAtMostSoManyResources(t *testing.T) {
	source := takenInOwnStore()
	source.Allowlist = &Allowlist{Shadowed: make([]Shadowed, 10*maxShadowed)}
	assert.Less(t, len(ShadowedBy(restoreOf(&velerov1.RestoreSpec{}), source, policy.Policy{})), 10*maxShadowed)
	assert.Empty(t, ReadShadowed("nothing that was written"))
}

func TestARestoreOfNothingButShadowedKindsSaysWhy(t *testing.T) {
	source := takenInOwnStore()
	source.Allowlist = besideKnative()
	err := Validate(restoreOf(&velerov1.RestoreSpec{BackupName: "nightly", IncludedResources: []string{"services"}}), source, policy.Policy{})
	require.ErrorContains(t, err, `only what ClusterRole "edit" may create in a namespace is; services, which it may, is left out because of `+
		"services.serving.knative.dev, which has the same plural")
	source.Allowlist.Shadowed[1].By = schema.GroupResource{}
	err = Validate(restoreOf(&velerov1.RestoreSpec{BackupName: "nightly", IncludedResources: []string{"things"}}), source, policy.Policy{})
	assert.NotContains(t, err.Error(), "plural", "it has nothing to do with that")
}
