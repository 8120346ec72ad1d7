package restoretool_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
)

// FoundationDB and payloads of workflows spell states in lower case, the API does not: no state is lost by the conversion.
func TestStatesAreSpelledOneWayInTheAPI(t *testing.T) {
	for _, state := range fdbv1alpha1.ObservedRestoreStates() {
		word := restoretool.Word(state)
		assert.Equal(t, strings.ToLower(word), word)
		assert.Equal(t, state, restoretool.Observed(word))
		assert.Equal(t, state, restoretool.Observed(string(state)))
		assert.Equal(t, state.Final(), restoretool.Over(word))
	}
	assert.Empty(t, restoretool.Observed(""))
	assert.Empty(t, restoretool.Word(""))
	assert.Equal(t, fdbv1alpha1.RestoreUnknown, restoretool.Observed("warming-up"), "a state of a newer FoundationDB")
	assert.False(t, restoretool.Over("warming-up"))
}
