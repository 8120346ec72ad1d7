package tools

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOneNamespaceDoesNotHoldUpAllOthers(t *testing.T) {
	var d Places
	limit := Limit{All: 10, Namespace: 3}
	for range limit.Namespace {
		assert.True(t, d.Begin("slow", limit))
	}
	assert.False(t, d.Begin("slow", limit), "it has its share")
	for i := range limit.All - limit.Namespace {
		assert.True(t, d.Begin(string(rune('a'+i)), limit))
	}
	assert.False(t, d.Begin("other", limit), "there are enough")
	d.End("slow")
	assert.True(t, d.Begin("other", limit))
	d.End("other")
	assert.True(t, d.Begin("slow", limit))
}
