package restoretool

import (
	"strings"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// wordCompleted is FoundationDB's word for a restore that has written everything.
const wordCompleted = "completed"

// Completed reports whether FoundationDB says that everything was restored.
func Completed(word string) bool { return word == wordCompleted }

// Observed returns the state of the API for a word of FoundationDB's, or of a workflow's payload, which is in lower case; empty
// for an empty one.
func Observed(word string) fdbv1alpha1.ObservedRestoreState {
	if word == "" {
		return ""
	}
	for _, state := range fdbv1alpha1.ObservedRestoreStates() {
		if strings.EqualFold(string(state), word) {
			return state
		}
	}
	return fdbv1alpha1.RestoreUnknown
}

// Word returns the word in a payload for a state of the API.
func Word(state fdbv1alpha1.ObservedRestoreState) string { return strings.ToLower(string(state)) }

// Over reports whether a restore in a state that FoundationDB names so has ended.
func Over(word string) bool { return Observed(word).Final() }
