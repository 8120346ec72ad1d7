package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheQueueOfThePolicy(t *testing.T) {
	p, err := ParseOwn([]byte(`
queue:
  maxActive: 200
  weights:
  - {namespaceSelector: {matchLabels: {tier: gold}}, weight: 3}
  - {namespaceSelector: {matchLabels: {tier: gold}}, weight: 9}
`))
	require.NoError(t, err)
	assert.Equal(t, 200, p.Queue.MaxActive)
	assert.Zero(t, p.Queue.MaxActiveRestores)
	assert.Equal(t, 4*time.Hour, p.Queue.Timeout())
	assert.Equal(t, 3, p.Queue.WeightOf(map[string]string{"tier": "gold"}), "the first that selects it")
	assert.Equal(t, 1, p.Queue.WeightOf(nil))
	p, err = ParseOwn([]byte("queue: {turnTimeout: 1m}"))
	require.NoError(t, err)
	assert.Equal(t, time.Minute, p.Queue.Timeout())
}

func TestThePolicyOfTheQueueIsReadStrictly(t *testing.T) {
	for document, want := range map[string]string{
		"queue: {maxActive: -1}":              "queue.maxActive must not be negative",
		"queue: {maxActiveRestores: 201}":     "queue.maxActiveRestores must be at most 200",
		"queue: {turnTimeout: -1m}":           "queue.turnTimeout must not be negative",
		"queue: {turnTimeout: 59s}":           "queue.turnTimeout must be at least 1m0s",
		"queue: {limit: 1}":                   "queue.limit is not a known field",
		"queue: {weights: [{weight: 1}]}":     "queue.weights[0].namespaceSelector must be set: {} selects all namespaces",
		"queue: {weights: [{weight: 1001}]}":  "queue.weights[0].weight must be between 1 and 1000",
		"queue: {weights: [{}, {weight: 0}]}": "queue.weights[1].weight must be between 1 and 1000",
	} {
		_, err := ParseOwn([]byte(document))
		assert.ErrorContains(t, err, want, document)
	}
}
