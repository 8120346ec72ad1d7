package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The plans of a cluster are open workflows for ever: the worker must not be killed for keeping them.
func TestTheCacheOfWorkflowsFitsIntoMemory(t *testing.T) {
	const mib = 1 << 20
	for limit, want := range map[int64]int{
		440 * mib: 4_292, // as deployed
		1 << 30:   10_000, 64 * mib: 100, 0: 100, math.MaxInt64: 10_000,
	} {
		assert.Equal(t, want, cachedWorkflows(limit), limit)
	}
	for limit := int64(128 * mib); limit < 1<<30; limit += mib {
		assert.LessOrEqual(t, restBytes+cachedWorkflows(limit)*cachedBytes, int(limit/3*2))
	}
}
