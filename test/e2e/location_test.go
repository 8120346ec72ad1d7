package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

type nabsl = oadpv1alpha1.NonAdminBackupStorageLocation

// rootCredentials is an AWS credentials file of the S3 server's root account.
func rootCredentials() []byte {
	storage := stack.Storage()
	return fmt.Appendf(nil, "[default]\naws_access_key_id=%s\naws_secret_access_key=%s\n", storage.AccessKey, storage.SecretKey)
}

func (x *tenant) secret(name string, content []byte) *corev1.Secret {
	x.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Data:       map[string][]byte{"cloud": content, "other": []byte("not to be copied")},
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), secret))
	return secret
}

// locationSpec is a spec for a bucket of the S3 server.
func locationSpec(bucket, secret string) *velerov1.BackupStorageLocationSpec {
	return &velerov1.BackupStorageLocationSpec{
		Provider: "aws",
		Config:   map[string]string{"region": stack.Storage().Region, "s3ForcePathStyle": "true", "s3Url": stack.Storage().Endpoint},
		Credential: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "cloud",
		},
		StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: bucket}},
	}
}

func (x *tenant) locate(name string, spec *velerov1.BackupStorageLocationSpec) *nabsl {
	x.t.Helper()
	location := &nabsl{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec:       oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: spec},
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), location))
	return location
}

func (x *tenant) awaitLocation(location *nabsl, wish string, ok func(*nabsl) bool) *nabsl {
	x.t.Helper()
	seen := &nabsl{}
	require.EventuallyWithT(x.t, func(c *assert.CollectT) {
		now := &nabsl{}
		if !assert.NoError(c, admin.Get(context.Background(), client.ObjectKeyFromObject(location), now)) {
			return
		}
		seen = now
		status, _ := json.Marshal(now.Status)
		assert.True(c, ok(now), "wish %q, status %s", wish, status)
	}, patience, 100*1e6, "%s/%s: %s", location.Namespace, location.Name, wish)
	return seen
}

func (x *tenant) awaitAvailable(location *nabsl) *nabsl {
	x.t.Helper()
	return x.awaitLocation(location, "Created and Available", func(now *nabsl) bool {
		made := now.Status.VeleroBackupStorageLocation
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated && made != nil && made.Status != nil &&
			made.Status.Phase == velerov1.BackupStorageLocationPhaseAvailable
	})
}

func locationCondition(location *nabsl, kind oadpv1alpha1.NonAdminCondition) *metav1.Condition {
	return meta.FindStatusCondition(location.Status.Conditions, string(kind))
}

// made reads an object of the OADP namespace as the administrator and reports whether it exists.
func made(t *testing.T, name string, into client.Object) bool {
	t.Helper()
	err := admin.Get(t.Context(), types.NamespacedName{Namespace: env.OADPNamespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(t, err)
	return true
}

func TestABackupIntoTheTenantsOwnLocation(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "erin")
	x.secret("credentials", rootCredentials())
	location := x.awaitAvailable(x.locate("own", locationSpec(stack.Storage().Bucket, "credentials")))
	name := location.Status.VeleroBackupStorageLocation.NACUUID

	copied := &corev1.Secret{}
	require.True(t, made(t, name, copied))
	assert.Equal(t, map[string][]byte{"cloud": rootCredentials()}, copied.Data, "the one key, nothing else")
	bsl := &velerov1.BackupStorageLocation{}
	require.True(t, made(t, name, bsl))
	assert.Equal(t, x.namespace, bsl.Spec.ObjectStorage.Prefix)

	nab := x.awaitVeleroPhase(x.backUp("nightly", withSpec(func(spec *velerov1.BackupSpec) { spec.StorageLocation = "own" })),
		velerov1.BackupPhaseCompleted)
	assert.Equal(t, name, nab.Status.VeleroBackup.Spec.StorageLocation)

	require.NoError(t, x.client.Delete(t.Context(), location))
	x.awaitGone(nab)
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(location), &nabsl{}))
	}, patience, 100*1e6)
	assert.False(t, made(t, name, &velerov1.BackupStorageLocation{}))
	assert.False(t, made(t, name, &corev1.Secret{}))
}
