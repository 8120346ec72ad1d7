package restore

import (
	"slices"
	"time"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// noProgress is how long a restore may make no progress before the status shows it with its error.
const noProgress = 10 * time.Minute

// Notice returns the memory after an inspection of the restore.
func Notice(s Situation) contract.FDBRestoreMemory {
	m := s.Memory
	if !s.answered() {
		return m
	}
	restore := s.Seen.Restore
	if restore != nil {
		m.DoubtUntil = 0
	}
	if restore == nil || Ended(restore.State) || s.Seen.AgentsPaused {
		m.Progress, m.ProgressAt = 0, 0
		return m
	}
	if progress := progressOf(restore); m.ProgressAt == 0 || progress != m.Progress {
		m.Progress, m.ProgressAt = progress, s.Now.Unix()
	}
	return m
}

// progressOf returns a number that changes with the restore's state: only the change matters.
func progressOf(restore *contract.FDBRestoreProgress) int64 {
	state := slices.Index([]string{StateQueued, StateStarting, StateRunning}, restore.State)
	return int64(state) + restore.BlocksDone + restore.BytesWritten + max(0, restore.CurrentVersion)
}

// stuck: it runs, and has made no progress for noProgress.
func (s Situation) stuck() bool {
	return s.Runs() && s.Memory.ProgressAt != 0 && s.Now.Sub(time.Unix(s.Memory.ProgressAt, 0)) >= noProgress
}

// patient are the reasons of conditions that only a person can end.
var patient = []string{
	fdbv1alpha1.ReasonDatabaseNotEmpty, fdbv1alpha1.ReasonDatabaseChanged, fdbv1alpha1.ReasonDataMissing,
}

// Patient reports whether only a person can help: another inspection soon is of no use.
func Patient(conditions []contract.FDBCondition) bool {
	return slices.ContainsFunc(conditions, func(c contract.FDBCondition) bool {
		return c.Type == fdbv1alpha1.ConditionMisconfiguredRestore || slices.Contains(patient, c.Reason)
	})
}
