package watch

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

func TestWhenARequestCame(t *testing.T) {
	const never = -time.Hour
	tests := map[string]struct {
		noted  []time.Duration // from the start
		looked time.Duration
		want   time.Duration
	}{
		"nobody noted it: a resync":            {looked: time.Minute, want: time.Minute},
		"noted once":                           {noted: []time.Duration{time.Second}, looked: time.Minute, want: time.Second},
		"several events, one look":             {noted: []time.Duration{2 * time.Second, time.Second, 3 * time.Second}, looked: time.Minute, want: time.Second},
		"put off, looked at when due":          {noted: []time.Duration{15 * time.Second}, looked: 15 * time.Second, want: 15 * time.Second},
		"put off, overtaken by another":        {noted: []time.Duration{15 * time.Second, 5 * time.Second}, looked: 6 * time.Second, want: 5 * time.Second},
		"put off, looked at earlier by itself": {noted: []time.Duration{15 * time.Second}, looked: 5 * time.Second, want: 5 * time.Second},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var a arrivals
				started := time.Now()
				a.note(request("another"), started.Add(never))
				for _, at := range test.noted {
					a.note(request(name), started.Add(at))
				}
				time.Sleep(test.looked)
				assert.Equal(t, test.want, a.take(request(name)).Sub(started))
				assert.Equal(t, time.Now(), a.take(request(name)), "once")
				assert.Len(t, a.first, 1, "nothing is kept of it")
			})
		})
	}
}

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
		s.backupEvents().Create(t.Context(), event.CreateEvent{Object: fake.NAB(name)}, q)
		time.Sleep(time.Second)
		s.signals.err = errAway
		assert.InDelta(t, 2, metricstest.Counted(t, signalsFailed, func() {
			for range 2 {
				_, err := s.look(t.Context(), request(name))
				require.ErrorIs(t, err, errAway)
				time.Sleep(time.Second)
			}
		}), 0)
		s.signals.err = nil
		assert.InDelta(t, 1, metricstest.Counted(t, signalsTaken, func() {
			_, err := s.look(t.Context(), request(name))
			require.NoError(t, err)
		}), 0)
		assert.Equal(t, 3*time.Second, signalSum(t)-before)
		assert.Empty(t, s.arrivals.first)

		_, err := s.look(t.Context(), request(name))
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
		s.veleroBackupEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: velero, ObjectNew: progress}, q)
		require.Len(t, q.added, 1)
		time.Sleep(q.added[0].after + 2*time.Second)
		_, err := s.look(t.Context(), request(name))
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, signalSum(t)-before)
	})
}

func TestNoSignalNoMeasurement(t *testing.T) {
	completed, completedBackup := tracked(name, "Completed")
	s, q := newStation(t, completed, completedBackup), &recordingQueue{}
	s.backupEvents().Create(t.Context(), event.CreateEvent{Object: completed}, q)
	assert.Zero(t, metricstest.Counted(t, signalsTaken, func() {
		_, err := s.look(t.Context(), request(name))
		require.NoError(t, err)
	}))
	assert.Empty(t, s.arrivals.first, "thousands of settled objects at a start leave nothing behind")
}
