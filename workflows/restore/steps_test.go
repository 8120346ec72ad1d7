package restore

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

// restoreViews calls check with every combination of facts that the decision looks at.
func restoreViews(check func(contract.RestoreView)) {
	bits := func(n, i int) bool { return n>>i&1 == 1 }
	for _, phase := range []string{"", "New", "BackingOff", "Created", "Deleting"} {
		for n := range 1 << 14 {
			check(contract.RestoreView{
				Found: true, Phase: phase, BeingDeleted: bits(n, 0), NamespaceTerminating: bits(n, 1), Finalizer: bits(n, 2),
				Marked: bits(n, 3), SpecValidated: bits(n, 4), Accepted: bits(n, 5), EverCreated: bits(n, 6),
				AbsenceReported: bits(n, 7), FinalizationDue: bits(n, 8),
				Velero: contract.VeleroRestoreView{
					Exists: bits(n, 9), Finished: bits(n, 10), Deleting: bits(n, 11), Phase: map[bool]string{true: "x"}[bits(n, 12)],
					AtWork: bits(n, 13),
				},
			})
		}
	}
}

func TestRestoreStepsAreSafe(t *testing.T) {
	restoreViews(func(v contract.RestoreView) {
		if Settled(v) {
			return
		}
		switch next(v) {
		case contract.StartRestore:
			require.False(t, v.BeingDeleted || v.EverCreated, "%+v", v)
		case contract.DeleteRestore:
			require.True(t, v.BeingDeleted && v.Velero.Exists && !v.NamespaceTerminating, "%+v", v)
			require.False(t, v.Marked && v.Velero.AtWork, "Velero would write to what is gone: %+v", v)
		case contract.ReleaseRestore:
			require.True(t, v.BeingDeleted, "%+v", v)
			require.True(t, !v.Velero.Exists || v.NamespaceTerminating, "the finalizer guards what exists: %+v", v)
		case wait:
			require.False(t, finalizationDue(v) && !v.EverCreated, "%+v", v)
			require.True(t, v.Velero.Exists || v.EverCreated, "there is somebody to wait for: %+v", v)
			require.False(t, v.BeingDeleted && !v.Velero.Deleting && !v.Velero.AtWork, "nobody deletes it: %+v", v)
		}
	})
}

// A watcher that follows leaves an event of such a restore to the leader.
func TestWhatAwaitsVeleroHasNothingElseToDo(t *testing.T) {
	var found int
	restoreViews(func(v contract.RestoreView) {
		if !AwaitsVelero(v) {
			return
		}
		found++
		require.Equal(t, wait, next(v), "%+v", v)
		require.True(t, v.Velero.Exists && v.Finalizer && v.SpecValidated && v.EverCreated && !v.BeingDeleted, "%+v", v)
		require.Equal(t, v.Velero.MirroredPhase, v.Velero.Phase, "%+v", v)
	})
	assert.NotZero(t, found)
}

func TestARestoreSaysWhatItWaitsFor(t *testing.T) {
	velero := contract.VeleroRestoreView{Name: "r", Exists: true}
	in := func(phase string, change func(*contract.RestoreView)) contract.RestoreView {
		v := contract.RestoreView{Velero: velero}
		v.Velero.Phase = phase
		if change != nil {
			change(&v)
		}
		return v
	}
	for want, view := range map[string]contract.RestoreView{
		"**Queued:** waits for Velero to start Velero Restore `r`.":                                                                                            in("", nil),
		"**InProgress:** Velero works on Velero Restore `r`.":                                                                                                  in("InProgress", nil),
		"**WaitingForPluginOperations:** Velero has restored 3 of 7 items of Velero Restore `r`.":                                                              in("WaitingForPluginOperations", func(v *contract.RestoreView) { v.Velero.ItemsRestored, v.Velero.TotalItems = 3, 7 }),
		"**Stalled:** the object store holds the results of Velero Restore `r`, and Velero still calls it InProgress. An administrator should restart Velero.": in("InProgress", func(v *contract.RestoreView) { v.Velero.Stalled = true }),
		"**Deleting:** waits for Velero to remove the files of Velero Restore `r` from the object store (phase: Completed). Velero does so once it runs, has ended its current restore, and the storage location is available.": in("Completed", func(v *contract.RestoreView) { v.BeingDeleted = true }),
		"**Deleting:** waits for Velero to end Velero Restore `r` (phase: Finalizing). Deleting it earlier would hold up other restores.":                                                                                       in("Finalizing", func(v *contract.RestoreView) { v.BeingDeleted, v.Velero.AtWork = true, true }),
	} {
		assert.Equal(t, want, awaited(view))
	}
}
