package property_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/workflowtest/property"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

func TestMakeTestDrawsTheSameEachTime(t *testing.T) {
	if sample.Whole() {
		t.Skip("make test-long draws at random")
	}
	draw := func() (drawn []uint64) {
		property.Check(t, func(t *rapid.T) { drawn = append(drawn, rapid.Uint64().Draw(t, "any")) })
		return drawn
	}
	first := draw()
	require.NotEmpty(t, first)
	assert.Equal(t, first, draw())
}
