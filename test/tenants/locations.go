package tenants

import (
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// CreateLocation makes a storage location of the tenant's own in an account's bucket, and the Secret with its keys. change may
// change the spec.
func (n *Namespace) CreateLocation(name string, account env.Account, change func(*velerov1.BackupStorageLocationSpec)) {
	n.T.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: name + "-keys"},
		Data:       map[string][]byte{"cloud": account.CredentialsFile()},
	}
	spec := &velerov1.BackupStorageLocationSpec{
		Provider: "aws",
		Config:   map[string]string{"region": n.Storage().Region, "s3ForcePathStyle": "true", "s3Url": n.Storage().Endpoint},
		Credential: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name}, Key: "cloud",
		},
		StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: account.Bucket}},
	}
	change(spec)
	require.NoError(n.T, n.Tenant.Create(n.T.Context(), secret))
	require.NoError(n.T, n.Tenant.Create(n.T.Context(), &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: name},
		Spec:       oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: spec},
	}))
}
