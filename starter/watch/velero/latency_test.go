package velero

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/k8s/metrics/metricstest"
)

// signalSum is the time that all signals of this process took until now.
func signalSum(t *testing.T) time.Duration {
	t.Helper()
	return time.Duration(metricstest.Sum(t, `holdfast_signal_seconds{kind="NonAdminBackup"}`) * float64(time.Second)).Round(time.Millisecond)
}

const (
	signalsTaken  = `holdfast_signal_seconds{kind="NonAdminBackup"}`
	signalsFailed = `holdfast_signal_failures_total{kind="NonAdminBackup"}`
)

// The time runs from the first event until Temporal has the signal, whatever lay between.
func TestTheTimeToASignalIncludesItsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := newStation(t, fake.NAB(name)), &recordingQueue{}
		before := signalSum(t)
		s.backups.events().Create(t.Context(), event.CreateEvent{Object: fake.NAB(name)}, q)
		time.Sleep(time.Second)
		s.signals.Err = errAway
		assert.InDelta(t, 2, metricstest.Counted(t, signalsFailed, func() {
			for range 2 {
				_, err := s.backups.Reconcile(t.Context(), request(name))
				require.ErrorIs(t, err, errAway)
				time.Sleep(time.Second)
			}
		}), 0)
		s.signals.Err = nil
		assert.InDelta(t, 1, metricstest.Counted(t, signalsTaken, func() {
			_, err := s.backups.Reconcile(t.Context(), request(name))
			require.NoError(t, err)
		}), 0)
		assert.Equal(t, 3*time.Second, signalSum(t)-before)

		_, err := s.backups.Reconcile(t.Context(), request(name))
		require.NoError(t, err)
		assert.Equal(t, 3*time.Second, signalSum(t)-before, "a resync waited for nobody")
	})
}

// The delay of progress is wanted.
func TestTheTimeToASignalOfProgressRunsFromItsDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nab, velero := tracked(name, "InProgress")
		s, q := newStation(t, nab, velero), &recordingQueue{}
		before := signalSum(t)
		progress := edited(velero, func(b *velerov1.Backup) { b.Status.Progress = &velerov1.BackupProgress{ItemsBackedUp: 1} })
		s.backups.veleroEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: velero, ObjectNew: progress}, q)
		require.Len(t, q.Added, 1)
		time.Sleep(q.Added[0].After + 2*time.Second)
		_, err := s.backups.Reconcile(t.Context(), request(name))
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, signalSum(t)-before)
	})
}

func TestNoSignalNoMeasurement(t *testing.T) {
	completed, completedBackup := tracked(name, "Completed")
	s, q := newStation(t, completed, completedBackup), &recordingQueue{}
	s.backups.events().Create(t.Context(), event.CreateEvent{Object: completed}, q)
	assert.Zero(t, metricstest.Counted(t, signalsTaken, func() {
		_, err := s.backups.Reconcile(t.Context(), request(name))
		require.NoError(t, err)
	}))
}
