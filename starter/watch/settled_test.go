package watch

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

// settled returns the i-th settled backup and its Velero Backup as they come from the API server: nothing in them is shared.
func settled(t testing.TB, i int) (nab, made client.Object) {
	t.Helper()
	name := fmt.Sprintf("nightly-%06d", i)
	nabOf, madeOf := watchtest.Tracked(fake.NAB(name), fake.VeleroName(name), fake.OADPNamespace, velerov1.BackupPhaseCompleted)
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	madeOf.Status.StartTimestamp, madeOf.Status.CompletionTimestamp = &now, &now
	madeOf.Status.Progress = &velerov1.BackupProgress{TotalItems: 7, ItemsBackedUp: 7}
	nab, made = &oadpv1alpha1.NonAdminBackup{}, &velerov1.Backup{}
	for from, to := range map[client.Object]client.Object{nabOf: nab, madeOf: made} {
		data, err := json.Marshal(from)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, to))
	}
	return nab, made
}

// A watcher of a hundred thousand settled backups is to fit into 1 GiB, half of which is for what is being read.
func TestASettledBackupTakesLittleMemory(t *testing.T) {
	const backups = 5000
	objects := make([]any, 0, 2*backups)
	before := heap()
	for i := range backups {
		nab, made := settled(t, i)
		for _, object := range []client.Object{nab, made} {
			stored, err := trimmed(object)
			require.NoError(t, err)
			objects = append(objects, stored)
		}
	}
	each := (heap() - before) / backups
	t.Logf("%d bytes for a backup and its Velero Backup", each)
	assert.Less(t, each, 3500)
	runtime.KeepAlive(objects)
}

// Tenants may choose more locations than there are common parts: the objects are the same.
func TestWhatIsCommonIsBounded(t *testing.T) {
	for i := range 2000 {
		nab := fake.NAB("nightly")
		nab.Spec.BackupSpec.StorageLocation = fmt.Sprint("location-", i)
		require.Equal(t, fmt.Sprint("location-", i), kept(t, nab).Spec.BackupSpec.StorageLocation)
	}
}
