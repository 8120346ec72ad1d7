package backup

import (
	"time"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// SlotAction returns the request that the throttle of first snapshots needs; empty if it needs none. A backup in its first
// snapshot counts, no matter who started it. One that is paused or makes no progress gives its slot back, and counts again when
// it progresses.
func SlotAction(s Situation) contract.FDBSlotAction {
	slot := s.Memory.Slot
	if s.Memory.Stalled && s.Memory.Progress == unbegun && slot == contract.FDBSlotGranted {
		return contract.FDBSlotRelease // it asks again, after the others
	}
	if Decide(s).Step == StepSlot && slot != contract.FDBSlotRequested {
		return contract.FDBSlotAcquire
	}
	if s.Seen.Failure != nil && !Stopping(s.View) {
		idle := slot == contract.FDBSlotGranted && s.Memory.Progress == unbegun && !s.Memory.Starting
		if idle || slot == contract.FDBSlotRequested || (s.Memory.Stalled && slot != contract.FDBSlotNone) {
			return contract.FDBSlotRelease
		}
		return "" // nothing is known
	}
	if s.WritesFirstSnapshot() {
		if slot != contract.FDBSlotGranted {
			return contract.FDBSlotCount
		}
		return ""
	}
	if slot != contract.FDBSlotNone && !s.wantsStart() {
		return contract.FDBSlotRelease
	}
	return ""
}

// wantsStart: a start is due, or requested.
func (s Situation) wantsStart() bool {
	switch decision := Decide(s); decision.Step {
	case StepSlot, StepPlan:
		return true
	case StepCommand:
		op := decision.Command.Operation
		return op == contract.FDBStart || (op == contract.FDBAbort && !Stopping(s.View))
	}
	return false
}

// WritesFirstSnapshot reports whether a backup of this object is in its first snapshot, and progresses.
func (s Situation) WritesFirstSnapshot() bool {
	current, runs := s.Current()
	return runs && !Stopping(s.View) && !s.Seen.AgentsPaused && !s.Memory.Stalled &&
		(current.State == fdb.StateSubmitted || current.State == fdb.StateRunning) && !current.Restorable
}

// Notice returns the memory after an inspection: since when a first snapshot has made no progress, and whether it has stalled.
func Notice(s Situation, now time.Time, limit time.Duration) contract.FDBMemory {
	m := s.Memory
	if s.Seen.Failure != nil { // whether it runs is unknown; for others that is the same as no progress
		if m.ProgressAt == 0 {
			switch m.Slot {
			case contract.FDBSlotGranted:
				m.Progress, m.ProgressAt = unbegun, now.Unix()
			case contract.FDBSlotUnknown:
				m.ProgressAt = now.Unix()
			}
		}
		m.Stalled = m.ProgressAt != 0 && now.Sub(time.Unix(m.ProgressAt, 0)) >= limit
		return m
	}
	m.Starting = false
	m.Paused = m.Paused || (s.Seen.AgentsPaused && s.View.Desired.State == string(fdbv1alpha1.BackupStatePaused))
	progress, watched := s.progress()
	if !watched {
		m.Progress, m.ProgressAt, m.Stalled = 0, 0, false
		return m
	}
	if m.ProgressAt == 0 || progress != m.Progress {
		m.Progress, m.ProgressAt, m.Stalled = progress, now.Unix(), false
		return m
	}
	m.Stalled = now.Sub(time.Unix(m.ProgressAt, 0)) >= limit
	return m
}

// unbegun is the progress of a start that has its slot and has not begun.
const unbegun = -1

// progress returns how far a first snapshot is. watched: there is one, or a start that has its slot.
func (s Situation) progress() (progress int64, watched bool) {
	m := s.Memory
	current, runs := s.Current()
	switch {
	case !runs:
		asksAgain := m.Slot == contract.FDBSlotUnknown && m.ProgressAt != 0 && m.Progress == unbegun
		return unbegun, m.Slot == contract.FDBSlotGranted || asksAgain
	case current.Restorable || s.Seen.AgentsPaused:
		return 0, false
	case current.State == fdb.StateSubmitted:
		return current.RangeBytes, true
	}
	return current.RangeBytes + 1, true // a state that advances is progress too
}
