package deploy_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/activities/fdb/agents"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/test/env"
)

// What a user copies resolves to a place, once the account in it is the user's own, and has agents.
func TestTheSampleFoundationDBBackupNamesADestination(t *testing.T) {
	samples := readObjects(t, "deploy/samples")
	backup := into[fdbv1alpha1.FoundationDBBackup](t, samples.find(t, "FoundationDBBackup/sample"))
	assert.Empty(t, backup.Namespace, "the user gives it")
	secret := into[corev1.Secret](t, samples.find(t, "Secret/"+backup.Spec.Credentials.SecretName))
	assert.Empty(t, secret.Namespace)
	accounts, err := fdb.ParseAccounts([]byte(secret.StringData["credentials"])) // the default key
	require.NoError(t, err)
	destination, err := fdb.Resolve(backup, accounts)
	require.NoError(t, err)
	assert.Equal(t, "blobstore://REPLACE-ME@s3.eu-central-1.amazonaws.com/sample?bucket=fdb-backups&region=eu-central-1", destination.URL())
	_, err = agents.Deployment(backup, "7.3.77")
	require.NoError(t, err)
}

// What a user copies to restore names the backup of the other sample, and another cluster than it backs up: it must be empty.
func TestTheSampleFoundationDBRestoreFitsTheSampleBackup(t *testing.T) {
	samples := readObjects(t, "deploy/samples")
	backup := into[fdbv1alpha1.FoundationDBBackup](t, samples.find(t, "FoundationDBBackup/sample"))
	restore := into[fdbv1alpha1.FoundationDBRestore](t, samples.find(t, "FoundationDBRestore/sample-restore"))
	assert.Empty(t, restore.Namespace, "the user gives it")
	assert.Equal(t, backup.Name, restore.Spec.BackupName)
	assert.Empty(t, restore.Spec.BackupURL)
	assert.NotEqual(t, backup.Spec.ClusterName, restore.Spec.DestinationClusterName)
}

// The rule of thumb of docs/foundationdb-expiry.md: what a user copies is expired, not refused.
func TestTheSamplePolicyOfExpiryIsMostlyNotRefused(t *testing.T) {
	backup := into[fdbv1alpha1.FoundationDBBackup](t, readObjects(t, "deploy/samples").find(t, "FoundationDBBackup/sample"))
	most, err := time.ParseDuration(backup.Spec.Expiry.MaxRetention)
	require.NoError(t, err)
	least, err := time.ParseDuration(backup.Spec.Expiry.MinRestorable)
	require.NoError(t, err)
	period := time.Duration(backup.Spec.SnapshotPeriodSeconds) * time.Second
	assert.Greater(t, most, period+least+24*time.Hour)
}

// fdbTakesSample applies the sample as a tenant does, to the real API server.
func fdbTakesSample(ctx context.Context, t *testing.T, stack *env.Env) {
	for _, sample := range []string{"foundationdbbackup.yaml", "foundationdbrestore.yaml"} {
		path := inCheckout(t, "deploy", "samples", sample)
		mustKubectl(ctx, t, stack, env.Admin, "apply", "-n", fdbNamespace, "-f", path, "--dry-run=server")
	}
}
