package backupspec

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
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

// tenantsStore is a storage location of the tenant's that is ready to be used.
func tenantsStore() *oadpv1alpha1.NonAdminBackupStorageLocation {
	return &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: policytest.Tenant, Name: "store"},
		Status: oadpv1alpha1.NonAdminBackupStorageLocationStatus{
			Phase:                       oadpv1alpha1.NonAdminPhaseCreated,
			VeleroBackupStorageLocation: &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: policytest.NACUUID, Name: policytest.NACUUID},
		},
	}
}

// newScheme returns a scheme with the kinds that specs name.
func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, oadpv1alpha1.AddToScheme(scheme))
	require.NoError(t, velerov1.AddToScheme(scheme))
	return scheme
}

// readerOf returns a reader of those objects.
func readerOf(t testing.TB, objects ...client.Object) client.Reader {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).Build()
}

// requireConfined requires that a spec reaches nothing outside the tenant's namespace.
func requireConfined(t *testing.T, spec velerov1.BackupSpec) {
	t.Helper()
	require.Equal(t, []string{policytest.Tenant}, spec.IncludedNamespaces)
	require.Nil(t, spec.ExcludedNamespaces)
	require.Empty(t, spec.IncludedClusterScopedResources)
	require.False(t, check.IsTrue(spec.IncludeClusterResources))
}
