package backupspec

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

var (
	tenantKinds = []string{
		"nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations", "nonadmindownloadrequests",
		"restoredrills.holdfast.dev", "foundationdbdrills.fdb.holdfast.dev", "foundationdbrestores.fdb.holdfast.dev",
	}
	clusterKinds = []string{
		"securitycontextconstraints", "clusterroles", "clusterrolebindings", "priorityclasses", "customresourcedefinitions",
		"virtualmachineclusterinstancetypes", "virtualmachineclusterpreferences",
	}
	allKinds = append(append([]string{}, tenantKinds...), clusterKinds...)
)

func TestTheVeleroSpecIsTheTenantsWithinItsNamespace(t *testing.T) {
	given := &velerov1.BackupSpec{
		StorageLocation:   "store",
		TTL:               metav1.Duration{Duration: time.Hour},
		IncludedResources: []string{"configmaps"},
	}
	p := policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: new(false)}}

	require.Equal(t, velerov1.BackupSpec{
		IncludedNamespaces: []string{policytest.Tenant},
		StorageLocation:    policytest.NACUUID,
		TTL:                metav1.Duration{Duration: time.Hour},
		IncludedResources:  []string{"configmaps"},
		ExcludedResources:  allKinds,
		SnapshotVolumes:    new(false),
	}, Build(policytest.BackupOf(given), p, policytest.NACUUID))
}

func TestWhatNoTenantGetsIsExcludedInTheStyleOfTheSpec(t *testing.T) {
	tests := map[string]struct {
		spec              velerov1.BackupSpec
		enforced          *velerov1.BackupSpec
		wantAll           []string
		wantNamespaced    []string
		wantClusterScoped []string
	}{
		"no filter":                {wantAll: allKinds},
		"a filter for all kinds":   {spec: velerov1.BackupSpec{IncludedResources: []string{"pods"}}, wantAll: allKinds},
		"an empty filter by scope": {spec: velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{}}, wantAll: allKinds},
		"included by scope": {
			spec:           velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"pods"}},
			wantNamespaced: tenantKinds, wantClusterScoped: clusterKinds,
		},
		"excluded by scope": {
			spec: velerov1.BackupSpec{ExcludedNamespaceScopedResources: []string{"secrets", "nonadminrestores"}},
			wantNamespaced: []string{
				"secrets", "nonadminrestores", "nonadminbackups", "nonadminbackupstoragelocations", "nonadmindownloadrequests",
				"restoredrills.holdfast.dev", "foundationdbdrills.fdb.holdfast.dev", "foundationdbrestores.fdb.holdfast.dev",
			},
			wantClusterScoped: clusterKinds,
		},
		"cluster-scoped kinds excluded": {
			spec:           velerov1.BackupSpec{ExcludedClusterScopedResources: []string{"nodes"}},
			wantNamespaced: tenantKinds, wantClusterScoped: append([]string{"nodes"}, clusterKinds...),
		},
		"a filter by scope that is enforced": {
			enforced:       &velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"pods"}},
			wantNamespaced: tenantKinds, wantClusterScoped: clusterKinds,
		},
		"all kinds excluded": {spec: velerov1.BackupSpec{ExcludedResources: []string{"*"}}, wantAll: []string{"*"}},
		"all cluster kinds excluded": {
			spec:           velerov1.BackupSpec{ExcludedClusterScopedResources: []string{"*"}},
			wantNamespaced: tenantKinds, wantClusterScoped: []string{"*"},
		},
		"all namespaced kinds excluded": {
			spec:           velerov1.BackupSpec{ExcludedNamespaceScopedResources: []string{"*"}},
			wantNamespaced: []string{"*"}, wantClusterScoped: clusterKinds,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			built := Build(policytest.BackupOf(&tt.spec), policy.Policy{EnforceBackupSpec: tt.enforced}, "")
			require.Equal(t, tt.wantAll, built.ExcludedResources)
			require.Equal(t, tt.wantNamespaced, built.ExcludedNamespaceScopedResources)
			require.Equal(t, tt.wantClusterScoped, built.ExcludedClusterScopedResources)
		})
	}
}

func TestASpecThatWasNeverValidatedStaysInTheTenantsNamespace(t *testing.T) {
	for name, spec := range map[string]*velerov1.BackupSpec{
		"no spec": nil,
		"a spec that reaches for everything": {
			IncludedNamespaces:             []string{"*"},
			ExcludedNamespaces:             []string{policytest.Tenant},
			IncludeClusterResources:        new(true),
			IncludedClusterScopedResources: []string{"*"},
			VolumeSnapshotLocations:        []string{"default"},
			StorageLocation:                "default",
			SnapshotVolumes:                new(true),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: new(false)}}
			built := Build(policytest.BackupOf(spec), p, "")
			requireConfined(t, built)
			require.Empty(t, built.StorageLocation)
			require.Empty(t, built.VolumeSnapshotLocations)
			require.Equal(t, new(false), built.SnapshotVolumes)
		})
	}
}

func TestTheVeleroSpecSharesNothing(t *testing.T) {
	given, enforced := &velerov1.BackupSpec{}, &velerov1.BackupSpec{}
	policytest.SetNonZero(t, reflect.ValueOf(given).Elem(), 0)
	nab, p := policytest.BackupOf(given), policy.Policy{EnforceBackupSpec: enforced}
	for i := range reflect.TypeFor[velerov1.BackupSpec]().NumField() {
		if i%2 == 0 { // half of the fields come from the tenant, half from the policy
			reflect.ValueOf(given).Elem().Field(i).SetZero()
			policytest.SetNonZero(t, reflect.ValueOf(enforced).Elem().Field(i), 0)
		}
	}
	givenBefore, enforcedBefore := given.DeepCopy(), enforced.DeepCopy()

	built := Build(nab, p, "")
	for i := range reflect.TypeFor[velerov1.BackupSpec]().NumField() {
		if field := reflect.ValueOf(&built).Elem().Field(i); !field.IsZero() {
			policytest.Mutate(field)
		}
	}
	require.Equal(t, givenBefore, given)
	require.Equal(t, enforcedBefore, enforced)
}
