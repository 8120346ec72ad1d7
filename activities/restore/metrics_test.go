package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/workflows/contract"
)

// restoreSeries are what operators know of restores by.
var restoreSeries = []string{
	"holdfast_restore_creation_seconds", "holdfast_restore_mirror_seconds", "holdfast_restore_completion_seconds",
	`holdfast_restores_total{result="completed"}`, `holdfast_restores_total{result="partially_failed"}`,
	`holdfast_restores_total{result="failed"}`, `holdfast_restores_total{result="rejected"}`,
	`holdfast_restores_total{result="deleted"}`,
}

// grown returns by how much each of restoreSeries grows by what is done.
func grown(t *testing.T, do func()) []float64 {
	t.Helper()
	before := make([]float64, len(restoreSeries))
	for i, series := range restoreSeries {
		before[i] = metricstest.Value(t, series)
	}
	do()
	by := make([]float64, len(restoreSeries))
	for i, series := range restoreSeries {
		by[i] = metricstest.Value(t, series) - before[i]
	}
	return by
}

func veleroEnds(t *testing.T, w *fake.World, phase velerov1.RestorePhase) {
	t.Helper()
	made := w.VeleroRestore(restored)
	made.Status.Phase, made.Status.CompletionTimestamp = phase, &metav1.Time{Time: time.Now()}
	require.NoError(t, w.Client.Update(t.Context(), made))
}

// A restore is over when what follows Velero is: each step of its life is counted once, whatever is repeated.
func TestALifeOfARestoreIsCounted(t *testing.T) {
	w := restoring(t, "")
	f := w.Finalizations(t.TempDir(), nil)
	twice := func(activities ...string) {
		steps(t, w, activities...)
		steps(t, w, activities...)
	}
	assert.Equal(t, []float64{1, 0, 0, 0, 0, 0, 0, 0}, grown(t, func() {
		twice(contract.RefreshRestore.Name, contract.StartRestore.Name)
	}), "created")
	assert.Equal(t, []float64{0, 1, 0, 0, 0, 0, 0, 0}, grown(t, func() {
		veleroEnds(t, w, velerov1.RestorePhaseCompleted)
		twice(contract.RefreshRestore.Name)
	}), "Velero's Completed is not the end")

	record := contract.FinalizationRecord{
		Ref: fake.Ref(again), StartedAt: time.Now().Add(-time.Minute), Phase: "Finalizing",
		Tasks: []contract.RecordedTask{
			{Name: "volumes", Phase: "PartiallyFailed", StartedAt: time.Now().Add(-10 * time.Second), EndedAt: time.Now()},
			{Name: "cleanup", Phase: "InProgress", StartedAt: time.Now()},
		},
	}
	write := func() {
		for range 2 {
			_, err := activitytest.Performed[contract.FinalizationResult](t, f, contract.RecordFinalization.Name, record)
			require.NoError(t, err)
		}
	}
	const failedTask, seconds = `holdfast_restore_finalization_tasks_total{result="partially_failed",task="volumes"}`,
		`holdfast_restore_finalization_task_seconds{task="volumes"}`
	sum := metricstest.Sum(t, seconds)
	assert.InDelta(t, 1, metricstest.Counted(t, failedTask, write), 0)
	assert.InDelta(t, 10, metricstest.Sum(t, seconds)-sum, 1.01)
	record.Phase, record.EndedAt = "PartiallyFailed", time.Now()
	record.Tasks[1].Phase, record.Tasks[1].EndedAt = "Completed", time.Now()
	const cleanup = `holdfast_restore_finalization_tasks_total{result="completed",task="cleanup"}`
	assert.InDelta(t, 1, metricstest.Counted(t, cleanup, func() {
		assert.Equal(t, []float64{0, 0, 1, 0, 1, 0, 0, 0}, grown(t, func() {
			assert.InDelta(t, 1, metricstest.Counted(t, "holdfast_restore_finalization_seconds", write), 0)
		}), "the result is the finalization's")
	}), 0)

	assert.Equal(t, []float64{0, 0, 0, 0, 0, 0, 0, 1}, grown(t, func() {
		w.Remove(w.ReadRestore(again))
		steps(t, w, contract.DeleteRestore.Name)
		twice(contract.ReleaseRestore.Name)
	}), "deleted")
}

// Where nothing follows, Velero's end is the end.
func TestAFailedRestoreIsCountedAtVelerosEnd(t *testing.T) {
	w := started(t, "", velerov1.RestorePhaseInProgress)
	assert.Equal(t, []float64{0, 1, 1, 0, 0, 1, 0, 0}, grown(t, func() {
		veleroEnds(t, w, velerov1.RestorePhaseFailed)
		steps(t, w, contract.RefreshRestore.Name, contract.RefreshRestore.Name)
	}))
}

// How long a tenant takes to mend a spec says nothing of ours.
func TestARejectedRestoreIsCountedAndItsCreationNotMeasured(t *testing.T) {
	w := restoring(t, "")
	w.EditRestore(again, func(spec *velerov1.RestoreSpec) { spec.BackupName = "nothing" })
	assert.Equal(t, []float64{0, 0, 0, 0, 0, 0, 1, 0}, grown(t, func() {
		steps(t, w, contract.RefreshRestore.Name, contract.StartRestore.Name, contract.StartRestore.Name)
	}))
	w.EditRestore(again, func(spec *velerov1.RestoreSpec) { spec.BackupName = activitytest.Name })
	assert.Equal(t, make([]float64, len(restoreSeries)), grown(t, func() {
		steps(t, w, contract.RefreshRestore.Name, contract.StartRestore.Name)
	}))
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, w.ReadRestore(again).Status.Phase)
}

// The wait for a turn is measured once, when the Velero Restore has been made with it.
func TestTheWaitOfARestoreForItsTurnIsMeasured(t *testing.T) {
	const series = `holdfast_turn_wait_seconds{lane="by-hand",pool="restores"}`
	w := restoring(t, "")
	w.Policy.Queue.MaxActiveRestores = 1
	assert.InDelta(t, 0, metricstest.Counted(t, series, func() { steps(t, w, contract.StartRestore.Name) }), 0, "it waits")
	given := contract.RestoreStep{Ref: fake.Ref(again), Turn: contract.UsableTurn{Turn: contract.Turn{Number: 1, Given: time.Now().Unix()}, For: contract.TurnUsable}}
	assert.InDelta(t, 1, metricstest.Counted(t, series, func() {
		assert.InDelta(t, 0, grown(t, func() {
			for range 2 {
				_, err := stepWith(t, w, contract.StartRestore.Name, given)
				require.NoError(t, err)
			}
		})[0], 0, "the queue's time, not ours")
	}), 0)
	without := restoring(t, "")
	assert.InDelta(t, 0, metricstest.Counted(t, series, func() { steps(t, without, contract.StartRestore.Name) }), 0, "no queue")
}
