package restoretool

import (
	"slices"
)

// Names of states, as FoundationDB and status.state have them.
const (
	NameQueued    = "queued"
	NameStarting  = "starting"
	NameRunning   = "running"
	NameCompleted = "completed"
	NameAborted   = "aborted"
	NameFailed    = "failed"
)

// Over reports whether nothing happens any more in a state.
func Over(state string) bool {
	return slices.Contains([]string{NameCompleted, NameAborted, NameFailed}, state)
}

// Completed reports whether a state says that all was restored.
func Completed(state string) bool { return state == NameCompleted }
