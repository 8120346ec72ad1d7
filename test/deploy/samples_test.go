package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/locationspec"
	"holdfast.dev/holdfast/test/env"
)

func TestSamplesAreWhatTheirKindsTake(t *testing.T) {
	samples := readObjects(t, "deploy/samples")
	require.ElementsMatch(t, []string{
		"NonAdminBackup/everything", "NonAdminBackup/web", "ConfigMap/holdfast-policy", "ResourceQuota/backups",
		"RoleBinding/storage-approvers", "Secret/own-credentials", "NonAdminBackupStorageLocation/own",
		"NonAdminRestore/undo", "Secret/fdb-backup-credentials", "FoundationDBBackup/sample",
		"FoundationDBRestore/sample-restore", "FoundationDBDrill/sample-drill", "BackupPlan/nightly", "RestoreDrill/weekly",
		"Schedule/recovery-tenants", "Schedule/recovery-labelled", "Schedule/recovery-approvals",
	}, samples.ids())
	for _, o := range samples.ofKind("NonAdminBackup") {
		assert.Empty(t, o.GetNamespace(), "the tenant gives it")
		assert.NotNil(t, into[oadpv1alpha1.NonAdminBackup](t, o).Spec.BackupSpec)
	}
	restore := into[oadpv1alpha1.NonAdminRestore](t, samples.find(t, "NonAdminRestore/undo"))
	assert.Empty(t, restore.Namespace, "the tenant gives it")
	samples.find(t, "NonAdminBackup/"+restore.Spec.RestoreSpec.BackupName)
	quota := into[corev1.ResourceQuota](t, samples.find(t, "ResourceQuota/backups"))
	assert.Equal(t, corev1.ResourceList{
		"count/nonadminbackups.oadp.openshift.io": resource.MustParse("10"),
	}, quota.Spec.Hard)
}

// What a tenant copies passes all checks, once the keys in it are its own.
func TestTheSampleLocationIsAccepted(t *testing.T) {
	samples := readObjects(t, "deploy/samples")
	location := into[oadpv1alpha1.NonAdminBackupStorageLocation](t, samples.find(t, "NonAdminBackupStorageLocation/own"))
	assert.Empty(t, location.Namespace, "the tenant gives it")
	require.NoError(t, locationspec.Validate(location, policy.Policy{}))

	credential := location.Spec.BackupStorageLocationSpec.Credential
	secret := into[corev1.Secret](t, samples.find(t, "Secret/"+credential.Name))
	assert.Empty(t, secret.Namespace)
	require.Contains(t, secret.StringData, credential.Key)
	built := locationspec.Build(location.Spec.BackupStorageLocationSpec, policy.Policy{}, "shop", "shop-own-1")
	require.NoError(t, locationspec.CheckStoredCredentials(&built, []byte(secret.StringData[credential.Key])))
}

// The sample binds the role that the base lays in the same namespace.
func TestTheSampleBindingMakesApprovers(t *testing.T) {
	sample := into[rbacv1.RoleBinding](t, readObjects(t, "deploy/samples").find(t, "RoleBinding/storage-approvers"))
	role := render(t, inCheckout(t, "deploy", "base")).find(t, "Role/"+sample.RoleRef.Name)
	assert.Equal(t, "Role", sample.RoleRef.Kind)
	assert.Equal(t, role.GetNamespace(), sample.Namespace)
}

func TestTheSamplePolicyIsOne(t *testing.T) {
	config := into[corev1.ConfigMap](t, readObjects(t, "deploy/samples").find(t, "ConfigMap/holdfast-policy"))
	assert.Equal(t, env.OADPNamespace, config.Namespace)
	parsed, err := policy.Parse([]byte(config.Data["nonAdmin"]))
	require.NoError(t, err)
	require.NotNil(t, parsed.EnforceBackupSpec)
	assert.NotZero(t, parsed.EnforceBackupSpec.TTL)
}
