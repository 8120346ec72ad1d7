package outage

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnotherCaseTakesThePlaceOfOneThatHasShownNothing(t *testing.T) {
	var attempts Attempts
	assert.False(t, attempts.Completes(func() { attempts.Again(t, "taken up twice") }))
	assert.True(t, attempts.Completes(func() {}))
	assert.PanicsWithError(t, "a fault", func() { attempts.Completes(func() { panic(errors.New("a fault")) }) })
}

func TestWritesAreThoseOfTheCaseThatMadeTheFewest(t *testing.T) {
	var attempts Attempts
	want := []string{"create a", "patch b"}
	assert.False(t, attempts.Completes(func() { attempts.RequireWrites(t, want, []string{"create a", "create a", "patch b"}) }))
	assert.True(t, attempts.Completes(func() { attempts.RequireWrites(t, want, []string{"create a", "patch b", "patch b"}) }))
}

func TestWritesOfAnUndisturbedCaseAreMeasuredAgain(t *testing.T) {
	for title, test := range map[string]struct {
		measured [][]string
		want     []string
	}{
		"each comes once":          {[][]string{{"b", "a"}}, []string{"a", "b"}},
		"by chance more than once": {[][]string{{"a", "a", "b"}, {"a", "b"}}, []string{"a", "b"}},
		"always more than once":    {[][]string{{"a", "a", "b"}, {"a", "a", "b"}}, []string{"a", "a", "b"}},
	} {
		t.Run(title, func(t *testing.T) {
			var attempts Attempts
			var fewest []string
			for i, got := range test.measured {
				completed := attempts.Completes(func() { fewest = attempts.FewestWrites(t, got) })
				assert.Equal(t, i == len(test.measured)-1, completed)
			}
			assert.Equal(t, test.want, fewest)
		})
	}
}

func TestOnlyThoseAreRepeatedThatHaveShownNothing(t *testing.T) {
	count := 0
	part := func(again bool) Part {
		return Part{"part", func(t *testing.T, attempts *Attempts, ready, there *Guest) {
			require.NoError(t, ready.Come())
			require.NoError(t, there.Come())
			if again && count == 1 {
				attempts.Again(t, "taken up twice")
			}
		}}
	}
	var subjects []int
	RepeatTogether([]Part{part(false), part(true)}, func(all []Subject) {
		subjects = append(subjects, len(all))
		assert.True(t, Together(t, all, func() error { count++; return nil }))
	})
	assert.Equal(t, []int{2, 1}, subjects)
}
