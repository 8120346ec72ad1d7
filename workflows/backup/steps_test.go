package backup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

// views calls check with every combination of facts that the decision looks at.
func views(check func(contract.BackupView)) {
	bits := func(n, i int) bool { return n>>i&1 == 1 }
	for _, phase := range []string{"", "New", "BackingOff", "Created", "Deleting"} {
		for _, mark := range []contract.DeletionMark{contract.MarkNone, contract.MarkPending, contract.MarkAccepted} {
			for n := range 1 << 17 {
				v := contract.BackupView{
					Found: true, Phase: phase, Marked: mark,
					DeleteBackup: bits(n, 0), ForceDelete: bits(n, 1), BeingDeleted: bits(n, 2), NamespaceTerminating: bits(n, 3),
					Finalizer: bits(n, 4), SpecValidated: bits(n, 5), Accepted: bits(n, 6), EverCreated: bits(n, 7),
					AbsenceReported: bits(n, 8), VerdictDue: bits(n, 16),
					Velero:        contract.VeleroBackupView{Exists: bits(n, 9), Finished: bits(n, 10), Running: bits(n, 11), Unstarted: bits(n, 15), DigestsDue: bits(n, 10) && bits(n, 16)},
					DeleteRequest: contract.DeleteRequestView{Exists: bits(n, 12), Failed: bits(n, 13)},
				}
				if bits(n, 14) {
					v.DeleteRequest.Attempt = 1
				}
				check(v)
			}
		}
	}
}

func TestStepsAreSafe(t *testing.T) {
	views(func(v contract.BackupView) {
		if Settled(v) {
			return
		}
		step := next(v)
		asked := v.DeleteBackup || v.ForceDelete
		switch step {
		case contract.RequestDeletion:
			require.True(t, v.DeleteBackup && !v.ForceDelete && v.BeingDeleted && v.Velero.Exists,
				"data are deleted only as asked: %+v", v)
		case contract.WithdrawBackup:
			require.True(t, v.DeleteBackup && !v.ForceDelete && v.BeingDeleted && v.Velero.Unstarted, "%+v", v)
		case contract.DeleteVeleroObjects:
			require.True(t, v.ForceDelete, "%+v", v)
		case contract.MarkBackupDeleting:
			require.True(t, asked || v.BeingDeleted, "%+v", v)
		case contract.ReleaseBackup:
			require.True(t, v.BeingDeleted, "%+v", v)
			require.True(t, !v.Velero.Exists || v.NamespaceTerminating, "the finalizer guards what exists: %+v", v)
		case contract.StartBackup:
			require.False(t, asked || v.BeingDeleted || v.EverCreated, "%+v", v)
		}
	})
}

// A watcher that follows leaves an event of such a backup to the leader.
func TestWhatAwaitsVeleroHasNothingElseToDo(t *testing.T) {
	var found int
	views(func(v contract.BackupView) {
		if !AwaitsVelero(v) {
			return
		}
		found++
		require.Equal(t, wait, next(v), "%+v", v)
		require.True(t, v.Velero.Exists && v.Finalizer && v.SpecValidated && v.EverCreated, "%+v", v)
		require.False(t, v.DeleteBackup || v.ForceDelete || v.BeingDeleted || v.VerdictDue, "%+v", v)
	})
	assert.NotZero(t, found)
	v := contract.BackupView{
		Found: true, Phase: "Created", Finalizer: true, SpecValidated: true, Accepted: true, EverCreated: true,
		Velero: contract.VeleroBackupView{Exists: true, Phase: "InProgress", MirroredPhase: "InProgress", Running: true},
	}
	assert.True(t, AwaitsVelero(v))
	v.Velero.Phase = "Completed"
	assert.False(t, AwaitsVelero(v), "its status does not say so yet")
}

func TestForceDeleteGoesBeforeDeleteBackup(t *testing.T) {
	v := contract.BackupView{
		Found: true, Finalizer: true, BeingDeleted: true, DeleteBackup: true, ForceDelete: true,
		Marked: contract.MarkAccepted, Velero: contract.VeleroBackupView{Exists: true, Finished: true},
	}
	assert.Equal(t, contract.DeleteVeleroObjects, next(v))
}

func TestAPhaseThatIsNotKnownIsShown(t *testing.T) {
	for phase, want := range map[string]string{
		"Queued": "**Queued:** waits for Velero to start Velero Backup `b`.",
		"":       "**Queued:** waits for Velero to start Velero Backup `b`.",
		"OfTomorrow": "**OfTomorrow:** waits for Velero to finish Velero Backup `b`. This release of Holdfast does not know that phase of " +
			"Velero's; an administrator should update it.",
	} {
		assert.Equal(t, want, awaited(contract.BackupView{Velero: contract.VeleroBackupView{Name: "b", Exists: true, Phase: phase}}))
	}
}

// The deletion of a backup that stalls waits for the administrator, and for nothing else.
func TestAStallNamesItsRemedyWhateverIsAsked(t *testing.T) {
	const stalled = "**Stalled:** the object store holds the finished Velero Backup `b`, and Velero still calls it InProgress. " +
		"An administrator should restart Velero"
	velero := contract.VeleroBackupView{Name: "b", Exists: true, Running: true, Phase: "InProgress", Stalled: true}
	for title, test := range map[string]struct {
		view contract.BackupView
		want string
	}{
		"nothing":              {contract.BackupView{}, stalled + "."},
		"deletion of its data": {contract.BackupView{DeleteBackup: true, BeingDeleted: true}, stalled + "; the deletion continues after that."},
		"a plain deletion":     {contract.BackupView{BeingDeleted: true}, stalled + "; the deletion continues after that."},
	} {
		t.Run(title, func(t *testing.T) {
			test.view.Velero = velero
			assert.Equal(t, test.want, awaited(test.view))
		})
	}
}

func TestDeletionIsAskedAgainWithBackoff(t *testing.T) {
	v := contract.BackupView{
		Found: true, Finalizer: true, BeingDeleted: true, DeleteBackup: true, Marked: contract.MarkAccepted,
		Velero: contract.VeleroBackupView{Exists: true, Finished: true},
	}
	var delays []string
	for attempt := range 7 {
		v.DeleteRequest = contract.DeleteRequestView{Attempt: attempt, Exists: true, Failed: true}
		delays = append(delays, deletionRetryDelay(v).String())
	}
	assert.Equal(t, []string{"0s", "5s", "10s", "20s", "40s", "1m0s", "1m0s"}, delays)

	v.DeleteRequest = contract.DeleteRequestView{Attempt: 1, Exists: true}
	assert.Zero(t, deletionRetryDelay(v), "Velero has not answered yet")
	v.DeleteRequest = contract.DeleteRequestView{Attempt: 1}
	assert.NotZero(t, deletionRetryDelay(v), "the request is gone, the backup is not")
}
