package v1alpha1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOfARequestOnlyTheBeginningCounts(t *testing.T) {
	requested := func(value string) string { return RequestedRun(map[string]string{AnnotationRunNow: value}) }
	assert.Empty(t, RequestedRun(nil))
	assert.Equal(t, "1", requested("1"))
	assert.Equal(t, strings.Repeat("1", MaxRunNow), requested(strings.Repeat("1", 10*MaxRunNow)))
	assert.Equal(t, strings.Repeat("1", MaxRunNow-1), requested(strings.Repeat("1", MaxRunNow-1)+"ü"), "no half of a character")
}
