package policytest

import (
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// The tenant, its storage location and where Velero runs.
const (
	OADPNamespace = "openshift-adp"
	Tenant        = "team-a"
	NACUUID       = "team-a-store-0a1b2c3d"
)

// Ptr returns a pointer to a value.
func Ptr[T any](value T) *T { return &value }

// BackupOf returns the tenant's NonAdminBackup with that spec.
func BackupOf(spec *velerov1.BackupSpec) *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: Tenant, Name: "nightly"},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: spec},
	}
}

// Store is a storage location of the tenant's that is ready to be used.
func Store() *oadpv1alpha1.NonAdminBackupStorageLocation {
	return &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: Tenant, Name: "store"},
		Status: oadpv1alpha1.NonAdminBackupStorageLocationStatus{
			Phase:                       oadpv1alpha1.NonAdminPhaseCreated,
			VeleroBackupStorageLocation: &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: NACUUID, Name: NACUUID},
		},
	}
}

// VeleroStore is the Velero BackupStorageLocation made for store.
func VeleroStore() *velerov1.BackupStorageLocation {
	return &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: OADPNamespace, Name: NACUUID,
			Labels: map[string]string{
				oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabslOriginNACUUIDLabel: NACUUID,
			},
			Annotations: map[string]string{
				oadpv1alpha1.NabslOriginNamespaceAnnotation: Tenant,
				oadpv1alpha1.NabslOriginNameAnnotation:      "store",
			},
		},
		Status: velerov1.BackupStorageLocationStatus{Phase: velerov1.BackupStorageLocationPhaseAvailable},
	}
}

// NewScheme returns a scheme with the kinds that specs name.
func NewScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, oadpv1alpha1.AddToScheme(scheme))
	require.NoError(t, velerov1.AddToScheme(scheme))
	return scheme
}

// ReaderOf returns a reader of those objects.
func ReaderOf(t testing.TB, objects ...client.Object) client.Reader {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(NewScheme(t)).WithObjects(objects...).Build()
}

// RequireVerdict requires a verdict with that text; external if its cause lies outside the spec.
func RequireVerdict(t *testing.T, err error, want string, wantExternal bool) {
	t.Helper()
	var verdict *check.InvalidSpecError
	require.ErrorAs(t, err, &verdict)
	require.Equal(t, want, verdict.Message)
	require.Equal(t, wantExternal, verdict.External)
}

// RequireConfined requires that a spec reaches nothing outside the tenant's namespace.
func RequireConfined(t *testing.T, spec velerov1.BackupSpec) {
	t.Helper()
	require.Equal(t, []string{Tenant}, spec.IncludedNamespaces)
	require.Nil(t, spec.ExcludedNamespaces)
	require.Empty(t, spec.IncludedClusterScopedResources)
	require.False(t, check.IsTrue(spec.IncludeClusterResources))
}
