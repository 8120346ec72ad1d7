package objectstore

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLinesAreInTheResultsOnce(t *testing.T) {
	velero := Result{
		Velero: []string{"v"}, Cluster: []string{"c", "c"}, Namespaces: map[string][]string{"team": {"n"}, "crew": {"other"}},
	}
	ours := Result{Cluster: []string{"pv"}, Namespaces: map[string][]string{"team": {"claim"}, "more": {"m"}}}
	results := Results{ErrorsKey: velero}

	assert.True(t, results.Replace(ErrorsKey, "holdfast", ours))
	want := Result{
		Velero: []string{"v"}, Cluster: []string{"c", "c", "holdfast: pv"},
		Namespaces: map[string][]string{"team": {"n", "holdfast: claim"}, "crew": {"other"}, "more": {"holdfast: m"}},
	}
	assert.Equal(t, want, results[ErrorsKey])
	assert.False(t, results.Replace(ErrorsKey, "holdfast", ours), "again")
	assert.Equal(t, want, results[ErrorsKey])

	assert.True(t, results.Replace(ErrorsKey, "holdfast", Result{Cluster: []string{"other words"}}), "said again")
	assert.Equal(t, []string{"c", "c", "holdfast: other words"}, results[ErrorsKey].Cluster)
	assert.Equal(t, map[string][]string{"team": {"n"}, "crew": {"other"}}, results[ErrorsKey].Namespaces)

	assert.True(t, results.Replace(ErrorsKey, "holdfast", Result{}), "unsaid")
	assert.False(t, results.Replace(ErrorsKey, "holdfast", Result{}))
	assert.False(t, results.Replace(WarningsKey, "holdfast", Result{}))
	assert.NotContains(t, results, WarningsKey)
	assert.Equal(t, velero, results[ErrorsKey])
}

func TestTwoAuthorsDoNotMeet(t *testing.T) {
	results := Results{}
	assert.True(t, results.Replace(WarningsKey, "holdfast volumes", Result{Velero: []string{"a"}}))
	assert.True(t, results.Replace(WarningsKey, "holdfast validation", Result{Velero: []string{"b"}}))
	assert.False(t, results.Replace(WarningsKey, "holdfast volumes", Result{Velero: []string{"a"}}))
	assert.ElementsMatch(t, []string{"holdfast volumes: a", "holdfast validation: b"}, results[WarningsKey].Velero)
}
