package gate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Who asks for no cached results does not ask for fewer runs of what is new.
func TestNewTestsRunAsOftenAsTheyMust(t *testing.T) {
	g := GoTest{Flags: []string{"-count=1"}}
	assert.True(t, strings.HasSuffix(strings.Join(g.arguments(Job{Fresh: true, Count: 2}, ""), " "), "-count 2"), "the last one counts")
	assert.NotContains(t, g.arguments(Job{Fresh: true}, ""), "-count", "it is given")
	g.Flags = nil
	assert.Contains(t, g.arguments(Job{Fresh: true}, ""), "-count")
	assert.NotContains(t, g.arguments(Job{}, ""), "-count")
}

func TestWhatTheCacheCannotJudgeAlwaysRuns(t *testing.T) {
	packages := []string{module + "/k8s", module + "/test/house", module + "/test/fdbtools"}
	jobs := Jobs(Unit, packages)
	assert.Equal(t, packages[:1], jobs[0].Packages)
	assert.Equal(t, packages[1:], jobs[1].Packages)
	assert.Equal(t, []bool{false, true}, []bool{jobs[0].Fresh, jobs[1].Fresh})
	assert.Len(t, Jobs(Race, packages), 1, "it is the other stage's")
}
