package policytest

import (
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// The tenant, its storage location and where Velero runs.
const (
	OADPNamespace = "openshift-adp"
	Tenant        = "team-a"
	NACUUID       = "team-a-store-0a1b2c3d"
)

// BackupOf returns the tenant's NonAdminBackup with that spec.
func BackupOf(spec *velerov1.BackupSpec) *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: Tenant, Name: "nightly"},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: spec},
	}
}

// VeleroStore is the Velero BackupStorageLocation made for a storage location of the tenant's.
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

// RequireVerdict requires a verdict with that text; external if its cause lies outside the spec.
func RequireVerdict(t *testing.T, err error, want string, wantExternal bool) {
	t.Helper()
	var verdict *check.InvalidSpecError
	require.ErrorAs(t, err, &verdict)
	require.Equal(t, want, verdict.Message)
	require.Equal(t, wantExternal, verdict.External)
}
