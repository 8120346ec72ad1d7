package activitytest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/worker"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

// Periodic runs an activity of periodic work as a worker does.
func Periodic[Out any](t *testing.T, w *fake.World, activity string, input any) (Out, error) {
	t.Helper()
	return Performed[Out](t, periodic{w}, activity, input)
}

type periodic struct{ *fake.World }

// Register implements Registrar.
func (p periodic) Register(registry worker.ActivityRegistry) { p.RegisterPeriodic(registry) }

// SynchronizeNow synchronizes backups to the end.
func SynchronizeNow(t *testing.T, w *fake.World) contract.SynchronizationResult {
	t.Helper()
	result, err := Periodic[contract.SynchronizationResult](t, w, contract.SynchronizeBackups.Name, contract.ScheduledInput{})
	require.NoError(t, err)
	return result
}

// Listed is an administrator's location that Velero has listed.
func Listed() *velerov1.BackupStorageLocation {
	return &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "default"},
		Status: velerov1.BackupStorageLocationStatus{
			Phase: velerov1.BackupStorageLocationPhaseAvailable, LastSyncedTime: &metav1.Time{Time: time.Now()},
		},
	}
}

// SyncedBackup is a finished Velero Backup that Velero has synced an hour after its end.
func SyncedBackup(of string) *velerov1.Backup {
	nab, vname := fake.NAB(of), fake.VeleroName(of)
	made := &velerov1.Backup{ObjectMeta: owner.Backup.Meta(nab, vname, fake.OADPNamespace, vname)}
	made.UID, made.CreationTimestamp = "velero-uid", metav1.NewTime(time.Now().Add(-time.Minute))
	made.Spec.StorageLocation = "default"
	ended := metav1.NewTime(time.Now().Add(-time.Hour))
	made.Status = velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &ended, CompletionTimestamp: &ended}
	return made
}

// CollectNow collects orphans once.
func CollectNow(t *testing.T, w *fake.World) contract.CollectionResult {
	t.Helper()
	result, err := Periodic[contract.CollectionResult](t, w, contract.CollectOrphans.Name, contract.CollectionInput{})
	require.NoError(t, err)
	return result
}
