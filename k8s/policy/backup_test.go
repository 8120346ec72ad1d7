package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

const (
	oadpNamespace = "openshift-adp"
	tenant        = "team-a"
	nacuuid       = "team-a-store-0a1b2c3d"
)

func ptr[T any](value T) *T { return &value }

func backupOf(spec *velerov1.BackupSpec) *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "nightly"},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: spec},
	}
}

// store is a storage location of the tenant's that is ready to be used.
func store() *oadpv1alpha1.NonAdminBackupStorageLocation {
	return &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "store"},
		Status: oadpv1alpha1.NonAdminBackupStorageLocationStatus{
			Phase:                       oadpv1alpha1.NonAdminPhaseCreated,
			VeleroBackupStorageLocation: &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: nacuuid, Name: nacuuid},
		},
	}
}

// veleroStore is the Velero BackupStorageLocation made for store.
func veleroStore() *velerov1.BackupStorageLocation {
	return &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: oadpNamespace, Name: nacuuid,
			Labels: map[string]string{
				oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabslOriginNACUUIDLabel: nacuuid,
			},
			Annotations: map[string]string{
				oadpv1alpha1.NabslOriginNamespaceAnnotation: tenant,
				oadpv1alpha1.NabslOriginNameAnnotation:      "store",
			},
		},
		Status: velerov1.BackupStorageLocationStatus{Phase: velerov1.BackupStorageLocationPhaseAvailable},
	}
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, oadpv1alpha1.AddToScheme(scheme))
	require.NoError(t, velerov1.AddToScheme(scheme))
	return scheme
}

func readerOf(t testing.TB, objects ...client.Object) client.Reader {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).Build()
}

func requireVerdict(t *testing.T, err error, want string, wantExternal bool) {
	t.Helper()
	var verdict *InvalidSpecError
	require.ErrorAs(t, err, &verdict)
	require.Equal(t, want, verdict.Message)
	require.Equal(t, wantExternal, verdict.External)
}

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
		"another beside the own":     {&velerov1.BackupSpec{IncludedNamespaces: []string{tenant, "team-b"}}, otherNamespaces},
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
			&velerov1.BackupSpec{IncludeClusterResources: ptr(true)},
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
		"a storage location that no object can be named": {
			&velerov1.BackupSpec{StorageLocation: "../openshift-adp/default"},
			"NonAdminBackup spec.backupSpec.storageLocation is invalid: may not contain '/'",
		},
		"a storage location with an endless name": {
			&velerov1.BackupSpec{StorageLocation: strings.Repeat("x", 1<<10)},
			"NonAdminBackup spec.backupSpec.storageLocation is invalid: must be no more than 253 characters",
		},
		"a spec too large to be held three times in one object": {
			&velerov1.BackupSpec{DataMover: strings.Repeat("x", maxSpecBytes)},
			fmt.Sprintf("NonAdminBackup spec.backupSpec is too large: %d bytes of JSON, 262144 are allowed", jsonSize(
				&velerov1.BackupSpec{DataMover: strings.Repeat("x", maxSpecBytes)})),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ValidateBackup(t.Context(), readerOf(t), oadpNamespace, backupOf(tt.spec), Policy{})
			requireVerdict(t, err, tt.want, false)
		})
	}
}

func TestSpecsWithinTheTenantsRightsAreAccepted(t *testing.T) {
	tests := map[string]*velerov1.BackupSpec{
		"an empty spec":                      {},
		"the own namespace":                  {IncludedNamespaces: []string{tenant}},
		"no namespaces":                      {IncludedNamespaces: []string{}},
		"no cluster-scoped resources":        {IncludeClusterResources: ptr(false)},
		"hooks in the own pods":              {Hooks: velerov1.BackupHooks{Resources: []velerov1.BackupResourceHookSpec{{Name: "h"}}}},
		"a label selector":                   {LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		"an empty list of cluster resources": {IncludedClusterScopedResources: []string{}},
		"the own storage location":           {StorageLocation: "store"},
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			reader := readerOf(t, store(), veleroStore())
			require.NoError(t, verdictOn(t, reader, backupOf(spec), Policy{}))
		})
	}
}

func TestASpecThatCannotBeDecodedIsRefusedWithTheReason(t *testing.T) {
	nab := backupOf(nil)
	nab.Spec.Unreadable = `ttl: time: invalid duration "banana"`
	requireVerdict(t, verdictOn(t, readerOf(t), nab, Policy{}),
		`NonAdminBackup spec.backupSpec is invalid: ttl: time: invalid duration "banana"`, false)

	nab.Spec.Unreadable = strings.Repeat("é", 1<<20)
	_, err := ValidateBackup(t.Context(), readerOf(t), oadpNamespace, nab, Policy{})
	require.LessOrEqual(t, len(err.Error()), maxMessage+3, "the text must fit into a condition")
}

func TestChecksAreMadeInOrder(t *testing.T) {
	spec := &velerov1.BackupSpec{
		IncludedNamespaces:             []string{"team-b"},
		ExcludedNamespaces:             []string{"team-b"},
		IncludeClusterResources:        ptr(true),
		IncludedClusterScopedResources: []string{"clusterroles"},
		StorageLocation:                "missing",
		VolumeSnapshotLocations:        []string{"default"},
		SnapshotVolumes:                ptr(true),
	}
	p := Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: ptr(false)}}
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
		require.ErrorContains(t, verdictOn(t, readerOf(t), backupOf(spec), p), step.want)
		step.mend()
	}
	require.NoError(t, verdictOn(t, readerOf(t), backupOf(spec), p))
}

func TestTheOldNameOfAFieldDoesNotGetRoundAnEnforcedValue(t *testing.T) {
	p := Policy{EnforceBackupSpec: &velerov1.BackupSpec{DefaultVolumesToFsBackup: ptr(false)}}
	nab := backupOf(&velerov1.BackupSpec{DefaultVolumesToRestic: ptr(true)})

	requireVerdict(t, verdictOn(t, readerOf(t), nab, p),
		"the administrator has restricted spec.backupSpec.defaultVolumesToFsBackup field value to false", true)
	require.Equal(t, ptr(true), nab.Spec.BackupSpec.DefaultVolumesToRestic, "validation must not change the spec")

	built := BuildBackupSpec(nab, p, "")
	require.Nil(t, built.DefaultVolumesToRestic)
	require.Equal(t, ptr(false), built.DefaultVolumesToFsBackup)
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
	_, err := ValidateBackup(t.Context(), failingReader(t, down), oadpNamespace,
		backupOf(&velerov1.BackupSpec{StorageLocation: "store"}), Policy{})
	require.ErrorIs(t, err, down)
	require.EqualError(t, err, "get NonAdminBackupStorageLocation team-a/store: connection refused")
	var verdict *InvalidSpecError
	require.NotErrorAs(t, err, &verdict)
}

func verdictOn(t *testing.T, reader client.Reader, nab *oadpv1alpha1.NonAdminBackup, p Policy) error {
	t.Helper()
	_, err := ValidateBackup(t.Context(), reader, oadpNamespace, nab, p)
	return err
}
