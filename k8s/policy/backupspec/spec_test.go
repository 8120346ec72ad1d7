package backupspec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func TestSpecsAreRefusedWithTheTextsTenantsKnow(t *testing.T) {
	const excluded = "NonAdminBackup spec.backupSpec.excludedNamespaces is restricted"
	const otherNamespaces = "NonAdminBackup spec.backupSpec.includedNamespaces is restricted, " +
		"can not contain namespaces other than: team-a"
	tests := map[string]struct {
		spec *velerov1.BackupSpec
		want string
	}{
		"a spec that is not there":   {nil, "NonAdminBackup spec.backupSpec is not set"},
		"another tenant's namespace": {&velerov1.BackupSpec{IncludedNamespaces: []string{"team-b"}}, otherNamespaces},
		"another beside the own":     {&velerov1.BackupSpec{IncludedNamespaces: []string{policytest.Tenant, "team-b"}}, otherNamespaces},
		"all namespaces":             {&velerov1.BackupSpec{IncludedNamespaces: []string{"*"}}, otherNamespaces},
		"the empty namespace":        {&velerov1.BackupSpec{IncludedNamespaces: []string{""}}, otherNamespaces},
		"a pattern of namespaces":    {&velerov1.BackupSpec{IncludedNamespaces: []string{"team-*"}}, otherNamespaces},
		"excluded namespaces": {
			&velerov1.BackupSpec{ExcludedNamespaces: []string{"team-b"}}, excluded,
		},
		"an empty list of excluded namespaces": {
			&velerov1.BackupSpec{ExcludedNamespaces: []string{}}, excluded,
		},
		"cluster-scoped resources": {
			&velerov1.BackupSpec{IncludeClusterResources: new(true)},
			"NonAdminBackup spec.backupSpec.includeClusterResources is restricted, can only be set to false",
		},
		"chosen cluster-scoped resources": {
			&velerov1.BackupSpec{IncludedClusterScopedResources: []string{"clusterroles"}},
			"NonAdminBackup spec.backupSpec.includedScopedResources is restricted, must remain empty",
		},
		"volume snapshot locations": {
			&velerov1.BackupSpec{VolumeSnapshotLocations: []string{"default"}},
			"NonAdminBackup spec.backupSpec.volumeSnapshotLocations is restricted",
		},
		"an empty list of volume snapshot locations": {
			&velerov1.BackupSpec{VolumeSnapshotLocations: []string{}},
			"NonAdminBackup spec.backupSpec.volumeSnapshotLocations is restricted",
		},
		"a ttl that is over at once (velero#10182)": {
			&velerov1.BackupSpec{TTL: metav1.Duration{Duration: -time.Hour}},
			"NonAdminBackup spec.backupSpec.ttl must not be negative: -1h0m0s",
		},
		"a storage location that no object can be named": {
			&velerov1.BackupSpec{StorageLocation: "../openshift-adp/default"},
			"NonAdminBackup spec.backupSpec.storageLocation is invalid: may not contain '/'",
		},
		"a storage location with an endless name": {
			&velerov1.BackupSpec{StorageLocation: strings.Repeat("x", 1<<10)},
			"NonAdminBackup spec.backupSpec.storageLocation is invalid: must be no more than 253 characters",
		},
		"a spec too large to be held three times in one object": {
			&velerov1.BackupSpec{DataMover: strings.Repeat("x", check.MaxSpecBytes)},
			fmt.Sprintf("NonAdminBackup spec.backupSpec is too large: %d bytes of JSON, 262144 are allowed", check.Size(
				&velerov1.BackupSpec{DataMover: strings.Repeat("x", check.MaxSpecBytes)})),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Validate(t.Context(), readerOf(t), policytest.OADPNamespace, policytest.BackupOf(tt.spec), policy.Policy{})
			policytest.RequireVerdict(t, err, tt.want, false)
		})
	}
}

func TestSpecsWithinTheTenantsRightsAreAccepted(t *testing.T) {
	tests := map[string]*velerov1.BackupSpec{
		"an empty spec":                      {},
		"the own namespace":                  {IncludedNamespaces: []string{policytest.Tenant}},
		"no namespaces":                      {IncludedNamespaces: []string{}},
		"no cluster-scoped resources":        {IncludeClusterResources: new(false)},
		"hooks in the own pods":              {Hooks: velerov1.BackupHooks{Resources: []velerov1.BackupResourceHookSpec{{Name: "h"}}}},
		"a label selector":                   {LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		"an empty list of cluster resources": {IncludedClusterScopedResources: []string{}},
		"the own storage location":           {StorageLocation: "store"},
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			reader := readerOf(t, tenantsStore(), policytest.VeleroStore())
			require.NoError(t, verdictOn(t, reader, policytest.BackupOf(spec), policy.Policy{}))
		})
	}
}

func TestASpecThatCannotBeDecodedIsRefusedWithTheReason(t *testing.T) {
	nab := policytest.BackupOf(nil)
	nab.Spec.Unreadable = `ttl: time: invalid duration "banana"`
	policytest.RequireVerdict(t, verdictOn(t, readerOf(t), nab, policy.Policy{}),
		`NonAdminBackup spec.backupSpec is invalid: ttl: time: invalid duration "banana"`, false)

	nab.Spec.Unreadable = strings.Repeat("é", 1<<20)
	_, err := Validate(t.Context(), readerOf(t), policytest.OADPNamespace, nab, policy.Policy{})
	require.LessOrEqual(t, len(err.Error()), check.MaxMessage+3, "the text must fit into a condition")
}

func TestChecksAreMadeInOrder(t *testing.T) {
	spec := &velerov1.BackupSpec{
		IncludedNamespaces:             []string{"team-b"},
		ExcludedNamespaces:             []string{"team-b"},
		IncludeClusterResources:        new(true),
		IncludedClusterScopedResources: []string{"clusterroles"},
		StorageLocation:                "missing",
		VolumeSnapshotLocations:        []string{"default"},
		SnapshotVolumes:                new(true),
	}
	p := policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: new(false)}}
	steps := []struct {
		want string
		mend func()
	}{
		{"spec.backupSpec.includedNamespaces is", func() { spec.IncludedNamespaces = nil }},
		{"spec.backupSpec.excludedNamespaces is", func() { spec.ExcludedNamespaces = nil }},
		{"spec.backupSpec.includeClusterResources is", func() { spec.IncludeClusterResources = nil }},
		{"spec.backupSpec.includedScopedResources is", func() { spec.IncludedClusterScopedResources = nil }},
		{"NonAdminBackupStorageLocation not found", func() { spec.StorageLocation = "" }},
		{"spec.backupSpec.volumeSnapshotLocations is", func() { spec.VolumeSnapshotLocations = nil }},
		{"spec.backupSpec.snapshotVolumes field value to false", func() { spec.SnapshotVolumes = nil }},
	}
	for _, step := range steps {
		require.ErrorContains(t, verdictOn(t, readerOf(t), policytest.BackupOf(spec), p), step.want)
		step.mend()
	}
	require.NoError(t, verdictOn(t, readerOf(t), policytest.BackupOf(spec), p))
}

func TestTheOldNameOfAFieldDoesNotGetRoundAnEnforcedValue(t *testing.T) {
	p := policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{DefaultVolumesToFsBackup: new(false)}}
	nab := policytest.BackupOf(&velerov1.BackupSpec{DefaultVolumesToRestic: new(true)})

	policytest.RequireVerdict(t, verdictOn(t, readerOf(t), nab, p),
		"the administrator has restricted spec.backupSpec.defaultVolumesToFsBackup field value to false", true)
	require.Equal(t, new(true), nab.Spec.BackupSpec.DefaultVolumesToRestic, "validation must not change the spec")

	built := Build(nab, p, "")
	require.Nil(t, built.DefaultVolumesToRestic)
	require.Equal(t, new(false), built.DefaultVolumesToFsBackup)
}

// A Velero without restic does not know the old name, and would leave the volumes out.
func TestVeleroIsGivenOneNameForTheVolumesByFile(t *testing.T) {
	yes, no := new(true), new(false)
	for title, test := range map[string]struct {
		tenants, enforced velerov1.BackupSpec
		want              *bool
	}{
		"the old name":            {velerov1.BackupSpec{DefaultVolumesToRestic: yes}, velerov1.BackupSpec{}, yes},
		"the old name wins":       {velerov1.BackupSpec{DefaultVolumesToRestic: yes, DefaultVolumesToFsBackup: no}, velerov1.BackupSpec{}, yes},
		"unless it is false":      {velerov1.BackupSpec{DefaultVolumesToRestic: no, DefaultVolumesToFsBackup: yes}, velerov1.BackupSpec{}, yes},
		"false says nothing":      {velerov1.BackupSpec{DefaultVolumesToRestic: no}, velerov1.BackupSpec{}, nil},
		"enforced by the old one": {velerov1.BackupSpec{}, velerov1.BackupSpec{DefaultVolumesToRestic: yes}, yes},
	} {
		t.Run(title, func(t *testing.T) {
			built := Build(policytest.BackupOf(&test.tenants), policy.Policy{EnforceBackupSpec: &test.enforced}, "")
			require.Equal(t, test.want, built.DefaultVolumesToFsBackup)
			require.Nil(t, built.DefaultVolumesToRestic)
		})
	}
}

// failingReader fails every read with err.
func failingReader(t *testing.T, err error) client.Reader {
	t.Helper()
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
	})
}

func TestWhatCannotBeReadIsNoVerdict(t *testing.T) {
	down := errors.New("connection refused")
	_, err := Validate(t.Context(), failingReader(t, down), policytest.OADPNamespace,
		policytest.BackupOf(&velerov1.BackupSpec{StorageLocation: "store"}), policy.Policy{})
	require.ErrorIs(t, err, down)
	require.EqualError(t, err, "get NonAdminBackupStorageLocation team-a/store: connection refused")
	var verdict *check.InvalidSpecError
	require.NotErrorAs(t, err, &verdict)
}

func verdictOn(t *testing.T, reader client.Reader, nab *oadpv1alpha1.NonAdminBackup, p policy.Policy) error {
	t.Helper()
	_, err := Validate(t.Context(), reader, policytest.OADPNamespace, nab, p)
	return err
}
