package tools

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOneNamespaceDoesNotHoldUpAllDescriptions(t *testing.T) {
	var d Describes
	for range maxNamespaceDescribes {
		assert.True(t, d.Begin("slow"))
	}
	assert.False(t, d.Begin("slow"), "it has its share")
	for i := range maxDescribes - maxNamespaceDescribes {
		assert.True(t, d.Begin(string(rune('a'+i))))
	}
	assert.False(t, d.Begin("other"), "there are enough")
	d.End("slow")
	assert.True(t, d.Begin("other"))
	d.End("other")
	assert.True(t, d.Begin("slow"))
}
