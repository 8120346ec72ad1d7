package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

// A tenant's keys open its own bucket, and Velero uses no others for it: not another tenant's, not its own.
func TestATenantsKeysOpenNoOtherBucket(t *testing.T) {
	t.Parallel()
	victim := newNeighbour(t)
	x := newTenant(t, "dave")
	account := newAccount(t)
	x.secret("credentials", account.CredentialsFile())
	for name, bucket := range map[string]string{"of-a-tenant": victim.account.Bucket, "of-the-administrator": stack.Storage().Bucket} {
		location := x.locate(name, locationSpec(bucket, "credentials"))
		seen := x.awaitLocationPhase(location, velerov1.BackupStorageLocationPhaseUnavailable)
		assert.Contains(t, seen.Status.VeleroBackupStorageLocation.Status.Message, "403")
		nab := x.backUp(name, into(name))
		x.awaitWaiting(nab, "is not in available state")
		assert.Empty(t, veleroBackupsOf(t, x.namespace))
		x.remove(location)
	}
	victim.checkUntouched(t)
	inDefault, err := stack.Objects("")
	require.NoError(t, err)
	for _, object := range inDefault {
		assert.NotContains(t, object.Key, x.namespace)
	}
}

// The longest name that an object may have is longer than a label's value.
func TestALocationWithTheLongestName(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "frank")
	account := newAccount(t)
	x.secret("credentials", account.CredentialsFile())
	name := strings.Repeat("long-name.", 25) + "end"
	location := x.locate(name, locationSpec(account.Bucket, "credentials"))
	x.awaitAvailable(location)
	nab := x.completedInto("inside", name)
	assert.True(t, bucketHas(t, account, x.namespace, nab.Status.VeleroBackup.Name))
	x.remove(location)
	x.awaitGone(nab)
	awaitEnd(t, nab)
}
