package least

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEachCountIsTheLeastOfAll(t *testing.T) {
	var counts Counts[string]
	limit := func(string) float64 { return 1 }
	assert.True(t, counts.Again(limit), "nothing is measured")
	counts.Add(map[string]float64{"a": 2, "b": 1, "once": 1})
	assert.True(t, counts.Again(limit))
	counts.Add(map[string]float64{"a": 1, "b": 2})
	assert.False(t, counts.Again(limit))
	assert.Equal(t, map[string]float64{"a": 1, "b": 1}, counts.Least())
	assert.Equal(t, 2, counts.Measured())
}

func TestThreeMeasurementsAreEnough(t *testing.T) {
	var counts Counts[string]
	for range 3 {
		assert.True(t, counts.Again(func(string) float64 { return 1 }))
		counts.Add(map[string]float64{"a": 2})
	}
	assert.False(t, counts.Again(func(string) float64 { return 1 }))
	assert.Equal(t, map[string]float64{"a": 2}, counts.Least())
}
