package tools

import (
	"slices"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// dueness says whether a command has to run, given the state of the database.
type dueness int

const (
	// commandStale: the state by which the command was decided has changed.
	commandStale dueness = iota
	// commandDue: it has to run.
	commandDue
	// commandDone: the state is already what the command brings about.
	commandDone
)

// due says whether a command still has to run. It never has to where somebody else's backup runs on the tag.
func due(command contract.FDBCommand, status fdb.Status, desired contract.FDBDesired) dueness {
	here := status.Tag.Running && fdbbackup.SamePlace(status.Tag.URL, command.URL)
	switch command.Operation {
	case contract.FDBStart:
		return dueStart(status.Tag, here)
	case contract.FDBModify:
		return dueModify(command, status.Tag, here, desired)
	case contract.FDBAbort:
		if !status.Tag.Running {
			return commandDone
		}
		return dueIf(here)
	case contract.FDBPause:
		return doneIf(status.AgentsPaused)
	case contract.FDBResume:
		return doneIf(!status.AgentsPaused)
	}
	return commandStale
}

func dueStart(tag contract.FDBTag, here bool) dueness {
	switch {
	case !tag.Running:
		return commandDue
	case here && tag.State != stateAborting:
		return commandDone
	}
	return commandStale
}

// stateAborting: an abort has begun and was not finished; Running is true.
const stateAborting = "Aborting"

// dueModify: the status of a backup that is only submitted has no period, so it would never be as desired.
func dueModify(command contract.FDBCommand, tag contract.FDBTag, here bool, desired contract.FDBDesired) dueness {
	shown := tag.State == fdb.StateRunning || tag.State == fdb.StateRunningDifferentially
	if !here || !shown {
		return commandStale
	}
	period := tag.SnapshotPeriodSeconds == 0 || tag.SnapshotPeriodSeconds == desired.SnapshotPeriodSeconds // 0: not shown
	return doneIf(period && sameURL(tag.URL, command.URL))
}

func dueIf(due bool) dueness {
	if due {
		return commandDue
	}
	return commandStale
}

func doneIf(done bool) dueness {
	if done {
		return commandDone
	}
	return commandDue
}

// sameURL reports whether two URLs are the same, with their parameters.
func sameURL(a, b string) bool {
	first, errFirst := fdb.ParseURL(a)
	second, errSecond := fdb.ParseURL(b)
	if errFirst != nil || errSecond != nil {
		return a == b
	}
	return first.SamePlace(second) && slices.Equal(first.Parameters, second.Parameters)
}
