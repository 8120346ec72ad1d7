package turns_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/turns"
)

// TestTheOrderIsThatOfTurnsThatEndInTheOrderOfTheirBegins: a namespace with a turn comes after those without one until its turn ends; with
// fewer turns than may run, none ends before the next begins, and with more, several do.
func TestTheOrderIsThatOfTurnsThatEndInTheOrderOfTheirBegins(t *testing.T) {
	waiting := []string{"a/2", "a/3", "b/2", "b/3", "c/1", "c/2"}
	for title, test := range map[string]struct {
		limit int
		run   []string
		alone bool
		want  string
	}{
		"none has a turn":         {limit: 2, alone: true, want: "a/2 b/2 c/1 a/3 b/3 c/2"},
		"one has, of two":         {limit: 2, alone: true, run: []string{"a/1"}, want: "b/2 a/2 c/1 b/3 a/3 c/2"},
		"two have, of two":        {limit: 2, alone: true, run: []string{"a/1", "b/1"}, want: "a/2 b/2 c/1 a/3 b/3 c/2"},
		"two have, in that order": {limit: 2, alone: true, run: []string{"b/1", "a/1"}, want: "b/2 a/2 c/1 b/3 a/3 c/2"},
		"more have than may":      {limit: 2, alone: true, run: []string{"c/0", "b/1", "a/1"}, want: "b/2 a/2 c/1 b/3 a/3 c/2"},
		"each has one":            {limit: 4, alone: true, run: []string{"a/1", "b/1", "c/0"}, want: "a/2 b/2 c/1 a/3 b/3 c/2"},
		"turns may be beside others of their namespace": {limit: 2, run: []string{"a/1"}, want: "a/2 b/2 c/1 a/3 b/3 c/2"},
	} {
		t.Run(title, func(t *testing.T) {
			q := &turns.Queue[string]{Limit: test.limit, Alone: test.alone}
			for _, name := range waiting {
				q.Add(0, who(name))
			}
			for _, name := range test.run {
				q.Hold(turns.Turn[string]{Member: who(name), Began: 1})
			}
			assert.Equal(t, test.want, keys(q.Order(1)))
			assert.Equal(t, keys(q.Order(1)[:3]), keys(q.Head(1, 3)))
			assert.Equal(t, test.want, keys(allOf(q, 1)), "they begin so")
		})
	}
}

// TestWhoIsPutFirstTakesItsNamespacesTurn: the others of its namespace come after those without one.
func TestWhoIsPutFirstTakesItsNamespacesTurn(t *testing.T) {
	q := &turns.Queue[string]{Limit: 2, Alone: true}
	q.Add(0, who("a/1"), who("a/2"), who("b/1"), who("c/1"))
	require.True(t, q.PutFirst(has("a/2")))
	assert.Equal(t, "a/2 b/1 c/1 a/1", keys(q.Order(1)))
	assert.Equal(t, "a/2 b/1 c/1 a/1", keys(allOf(q, 1)))
}
