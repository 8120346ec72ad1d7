package restore_test

import (
	"time"

	"holdfast.dev/holdfast/workflows/contract"
	fdbrestore "holdfast.dev/holdfast/workflows/fdb/restore"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const (
	place     = "blobstore://lab@s3.local/lab?bucket=b"
	container = "s3.local/b/lab"
)

// with returns a situation in which a restore is about to be started, changed.
func with(changes ...func(*fdbrestore.Situation)) fdbrestore.Situation {
	s := fdbrestore.Situation{
		View: contract.FDBRestoreView{
			Found: true, Held: true, Observed: true, Generation: 1, Owner: "lab:1", Tag: "lab-u", URL: place, Container: container,
			State: fdbrestore.StatePending,
		},
		Seen:     contract.FDBRestoreInspection{LockKnown: true, Agents: 3, Point: &contract.FDBPoint{Version: 700, Time: 1_780_000_000}},
		Resolved: true,
		Memory:   contract.FDBRestoreMemory{Reading: container, ReadingSince: noon.Unix()},
		Now:      noon,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func planned(s *fdbrestore.Situation) {
	s.View.Plan = &contract.FDBRestorePlan{
		Tag: "lab-u", URL: place, Container: container, Version: 700, Time: 1_780_000_000, Destination: "lab:1",
	}
}

// in puts the restore into a state in the destination.
func in(state string) func(*fdbrestore.Situation) {
	return func(s *fdbrestore.Situation) {
		planned(s)
		s.Seen.LockUID = "1"
		s.Seen.Restore = &contract.FDBRestoreProgress{Tag: "lab-u", UID: "1", State: state, Blocks: 8, BlocksDone: 2}
	}
}

func shown(state string) func(*fdbrestore.Situation) {
	return func(s *fdbrestore.Situation) { s.View.State = state }
}

func stopped(s *fdbrestore.Situation) { s.View.Stop = true }

func deleted(s *fdbrestore.Situation) { s.View.BeingDeleted = true }

func silent(s *fdbrestore.Situation) {
	s.Seen = contract.FDBRestoreInspection{
		Restore: s.Seen.Restore, // the last that was known
		Failure: &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "no answer"},
	}
	s.Resolved = false
}

func elsewhere(s *fdbrestore.Situation) {
	s.View.Owner, s.Seen, s.Resolved = "lab:2", contract.FDBRestoreInspection{}, false
}

func gone(s *fdbrestore.Situation) {
	s.View.Owner, s.View.ClusterGone, s.Seen, s.Resolved = "", true, contract.FDBRestoreInspection{}, false
	s.View.Problem = &contract.FDBCondition{Type: "MisconfiguredRestore", Reason: "ClusterMissing", Message: "no cluster"}
}

func unresolved(s *fdbrestore.Situation) { s.Resolved, s.Seen.Point = false, nil }

func unread(s *fdbrestore.Situation) { s.Memory.Reading, s.Memory.ReadingSince = "", 0 }

func paused(s *fdbrestore.Situation) { s.Seen.AgentsPaused, s.Opposed = true, []string{"team/nightly"} }

func ended(phases ...string) func(*fdbrestore.Situation) {
	return func(s *fdbrestore.Situation) {
		for _, phase := range phases {
			task := contract.RecordedTask{Name: "T", Phase: phase}
			if phase == fdbrestore.TaskFailed {
				task.Errors = []string{"it is locked"}
			}
			s.Tasks = append(s.Tasks, task)
		}
	}
}
