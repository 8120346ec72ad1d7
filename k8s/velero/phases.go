package velero

import (
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State is what Velero does with a Backup or Restore, as a label's value.
type State string

// The states of a Velero Backup or Restore.
const (
	// StateWaiting: not started (no phase yet, New, Queued, ReadyToStart).
	StateWaiting    State = "waiting"
	StateInProgress State = "in_progress"
	// StateFinalizing: its items are copied, and Velero has started the next one (WaitingForPluginOperations..., Finalizing...,
	// Cancelling).
	StateFinalizing State = "finalizing"
	StateDeleting   State = "deleting"
	// StateFinished: Velero will not change it any more without a request.
	StateFinished State = "finished"
	// StateUnknown: a phase that this version does not know.
	StateUnknown State = "unknown"
)

// States are all states.
var States = []State{StateWaiting, StateInProgress, StateFinalizing, StateDeleting, StateFinished, StateUnknown}

// The phases of a Restore are among those of a Backup, so each function here serves both.
//
// A phase that is not known here is of a newer Velero. It is shown as it is, and counts as unfinished: so such a backup is never
// good, keeps its turn, and is not deleted by retention. Whether it can be deleted now is Velero's answer to a request.

// StateOf is the state of a Backup or Restore in a phase.
func StateOf[P ~string](phase P) State {
	switch velerov1.BackupPhase(phase) {
	case "", velerov1.BackupPhaseNew, velerov1.BackupPhaseQueued, velerov1.BackupPhaseReadyToStart:
		return StateWaiting
	case velerov1.BackupPhaseInProgress:
		return StateInProgress
	case velerov1.BackupPhaseWaitingForPluginOperations, velerov1.BackupPhaseWaitingForPluginOperationsPartiallyFailed,
		velerov1.BackupPhaseFinalizing, velerov1.BackupPhaseFinalizingPartiallyFailed:
		return StateFinalizing
	case velerov1.BackupPhaseDeleting:
		return StateDeleting
	case velerov1.BackupPhaseFailedValidation, velerov1.BackupPhaseCompleted,
		velerov1.BackupPhasePartiallyFailed, velerov1.BackupPhaseFailed:
		return StateFinished
	}
	switch {
	case cancelling(phase):
		return StateFinalizing
	case Cancelled(phase):
		return StateFinished
	}
	return StateUnknown
}

// PhaseOf is the phase of a Velero Backup or Restore.
func PhaseOf(made client.Object) string {
	switch made := made.(type) {
	case *velerov1.Backup:
		return string(made.Status.Phase)
	case *velerov1.Restore:
		return string(made.Status.Phase)
	}
	return ""
}

// The phases in which a canceled Backup or Restore is to be, after 1.18: velero#9284 spells them with two l, #10509 with one, as
// Velero does for volumes.

// cancelling: Velero is about to end it at somebody's request.
func cancelling[P ~string](phase P) bool { return phase == "Cancelling" || phase == "Canceling" }

// Cancelled reports whether Velero has ended it at somebody's request. It is over for good.
func Cancelled[P ~string](phase P) bool { return phase == "Cancelled" || phase == "Canceled" }

// Finished reports whether Velero will not change it any more without a request.
func Finished[P ~string](phase P) bool { return StateOf(phase) == StateFinished }

// Good reports whether Velero has completed it without an error.
func Good[P ~string](phase P) bool {
	return velerov1.BackupPhase(phase) == velerov1.BackupPhaseCompleted
}

// Refused reports whether Velero has not begun it and never will.
func Refused[P ~string](phase P) bool {
	return velerov1.BackupPhase(phase) == velerov1.BackupPhaseFailedValidation
}

// Usable reports whether Velero has done what it could: a Backup can be restored, the finalization of a Restore may start.
func Usable[P ~string](phase P) bool {
	return Good(phase) || velerov1.BackupPhase(phase) == velerov1.BackupPhasePartiallyFailed
}

// HoldsTurn reports whether it holds a turn before Velero.
func HoldsTurn[P ~string](phase P) bool {
	state := StateOf(phase)
	return state != StateFinished && state != StateDeleting
}

// Running reports whether Velero works on a Backup, or is about to, and answers a DeleteBackupRequest with "backup is still in
// progress".
func Running(phase velerov1.BackupPhase) bool {
	state := StateOf(phase)
	return phase == velerov1.BackupPhaseReadyToStart || state == StateInProgress || state == StateFinalizing
}

// Writing reports whether one of Velero's workers, of which there is one per stage, writes to a Restore next. It retries a failed
// write for minutes, whatever the reason.
func Writing(phase velerov1.RestorePhase) bool {
	switch phase {
	case velerov1.RestorePhaseInProgress, velerov1.RestorePhaseFinalizing, velerov1.RestorePhaseFinalizingPartiallyFailed:
		return true
	}
	return cancelling(phase)
}

// Unwritten reports whether Velero has not written its files yet. Of an unknown phase Velero knows better.
func Unwritten[P ~string](phase P) bool {
	state := StateOf(phase)
	return state == StateWaiting || state == StateInProgress || cancelling(phase)
}

// Written reports whether Velero has written its files, and may read them again. Of an unknown phase that is not known.
func Written[P ~string](phase P) bool {
	return !Unwritten(phase) && StateOf(phase) != StateUnknown && !Refused(phase)
}

// Unstarted reports whether Velero has stored nothing of a Backup with this status: it waits, or it was refused.
func Unstarted(status *velerov1.BackupStatus) bool {
	if status.StartTimestamp != nil {
		return false
	}
	switch status.Phase {
	case "", velerov1.BackupPhaseNew, velerov1.BackupPhaseQueued, velerov1.BackupPhaseFailedValidation:
		return true
	}
	return false
}

// SynchronizedPhase is the phase with which Velero synchronizes a backup from a bucket, if it does. One that never ended comes
// when it has expired, so that it is deleted.
func SynchronizedPhase(stored *velerov1.Backup, now time.Time) (velerov1.BackupPhase, bool) {
	switch phase := stored.Status.Phase; {
	case phase == velerov1.BackupPhaseFailed, Usable(phase):
		return phase, true
	case StateOf(phase) == StateFinalizing && !cancelling(phase):
		expired := stored.Status.Expiration != nil && !stored.Status.Expiration.After(now)
		return velerov1.BackupPhasePartiallyFailed, expired
	}
	return "", false
}
