package activities

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOneNamespaceDoesNotHoldUpAllLooksIntoContainers(t *testing.T) {
	var d describes
	for range maxNamespaceDescribes {
		assert.True(t, d.begin("slow"))
	}
	assert.False(t, d.begin("slow"), "it has its share")
	for i := range maxDescribes - maxNamespaceDescribes {
		assert.True(t, d.begin(string(rune('a'+i))))
	}
	assert.False(t, d.begin("other"), "there are enough")
	d.end("slow")
	assert.True(t, d.begin("other"))
	d.end("other")
	assert.True(t, d.begin("slow"))
}
