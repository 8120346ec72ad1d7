package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// veleroSaysOf writes a phase into the Velero Restore of an object, as Velero does.
func veleroSaysOf(t *testing.T, nar *restoring, phase velerov1.RestorePhase) {
	t.Helper()
	found := veleroRestore(t, restoreID(nar))
	require.NotNil(t, found)
	before := found.DeepCopy()
	now := metav1.Now()
	found.Status.Phase = phase
	switch phase {
	case velerov1.RestorePhaseFailedValidation:
		found.Status.ValidationErrors = []string{"nothing to restore"}
	case velerov1.RestorePhaseFailed:
		found.Status.FailureReason = "the disk is full"
		found.Status.CompletionTimestamp = &now
	case velerov1.RestorePhaseCompleted, velerov1.RestorePhasePartiallyFailed:
		found.Status.CompletionTimestamp = &now
	default:
		found.Status.StartTimestamp = &now
		found.Status.Progress = &velerov1.RestoreProgress{TotalItems: 7, ItemsRestored: 3}
	}
	require.NoError(t, admin.Patch(t.Context(), found, client.MergeFrom(before)))
}

// Velero is stopped, and the test says what it would: every phase that there is, of restores that wait for each other.
func TestEveryPhaseOfVelerosRestores(t *testing.T) {
	x := newTenant(t, "frank")
	nab := x.completed("nightly")
	actForVelero(t)
	position := func(nar *restoring, position int) {
		t.Helper()
		x.awaitRestore(nar, "queue position", func(now *restoring) bool {
			return now.Status.QueueInfo != nil && now.Status.QueueInfo.EstimatedQueuePosition == position
		})
	}
	stages := []velerov1.RestorePhase{
		velerov1.RestorePhaseInProgress, velerov1.RestorePhaseWaitingForPluginOperations,
		velerov1.RestorePhaseWaitingForPluginOperationsPartiallyFailed, velerov1.RestorePhaseFinalizing,
		velerov1.RestorePhaseFinalizingPartiallyFailed,
	}
	ends := map[velerov1.RestorePhase]oadpv1alpha1.FinalizationPhase{ // empty: there is nothing to finalize
		velerov1.RestorePhaseCompleted:        oadpv1alpha1.FinalizationPhaseCompleted,
		velerov1.RestorePhasePartiallyFailed:  oadpv1alpha1.FinalizationPhasePartiallyFailed,
		velerov1.RestorePhaseFailed:           "",
		velerov1.RestorePhaseFailedValidation: "",
	}
	through := func(t *testing.T, end velerov1.RestorePhase, stages []velerov1.RestorePhase, place func(*restoring, int)) {
		finalized := ends[end]
		nar := x.awaitRestoreCreated(x.restore("ends-"+k8sName(end), nab.Name))
		time.Sleep(time.Second) // creation times are whole seconds, and the queue goes by them
		next := x.awaitRestoreCreated(x.restore("behind-"+k8sName(end), nab.Name))
		place(nar, 1)
		place(next, 2)
		for _, phase := range stages {
			veleroSaysOf(t, nar, phase)
			now := x.awaitRestorePhase(nar, phase)
			assert.Nil(t, now.Status.Finalization, "Velero is at work in %s", phase)
			assert.Equal(t, 3, now.Status.VeleroRestore.Status.Progress.ItemsRestored)
			if phase != velerov1.RestorePhaseInProgress { // Velero has turned to the next one
				place(nar, 0)
				place(next, 1)
			}
		}
		veleroSaysOf(t, nar, end)
		x.awaitRestorePhase(nar, end)
		if finalized != "" {
			now := x.awaitFinalizedAs(nar, finalized)
			warnings, _ := linesOf(now, "validation")
			require.Len(t, warnings, 1, "Velero has written no list")
			assert.Contains(t, warnings[0], "resource-list.json.gz")
		}
		recordRestore(t, nar)
		now := x.awaitRestorePhase(nar, end)
		assert.Equal(t, finalized != "", now.Status.Finalization != nil)
		assert.Equal(t, finalized != "", restoreCondition(now, oadpv1alpha1.NonAdminConditionFinalized) != nil)
		assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, now.Status.Phase)
		position(nar, 0)

		veleroSaysOf(t, next, velerov1.RestorePhaseFailed)
		assert.Equal(t, "the disk is full", x.awaitRestorePhase(next, velerov1.RestorePhaseFailed).Status.VeleroRestore.Status.FailureReason)
		recordRestore(t, next)
	}
	// One way through the queue and all stages is enough: each position is seconds late, and no other restore may be in the queue.
	t.Run("through all stages", func(t *testing.T) { through(t, velerov1.RestorePhaseCompleted, stages, position) })
	delete(ends, velerov1.RestorePhaseCompleted)
	t.Run("from the first stage", func(t *testing.T) {
		for end := range ends {
			t.Run(string(end), func(t *testing.T) {
				t.Parallel()
				through(t, end, stages[:1], func(*restoring, int) {})
			})
		}
	})
}

// k8sName is a phase as part of an object's name.
func k8sName(phase velerov1.RestorePhase) string { return strings.ToLower(string(phase)) }
