package turns_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/turns"
)

const (
	retry = 10
	rest  = 100
)

// who returns the member called "namespace/name", or "namespace/name@lane".
func who(name string) turns.Member[string] {
	namespace, _, _ := strings.Cut(name, "/")
	member := turns.Member[string]{Key: name, Namespace: namespace}
	if key, lane, in := strings.Cut(name, "@"); in {
		member.Key, member.Lane = key, int(lane[0]-'0')
	}
	return member
}

func keys(members []turns.Member[string]) string {
	var names []string
	for _, member := range members {
		names = append(names, member.Key)
	}
	return strings.Join(names, " ")
}

func has(names ...string) func(string) bool {
	return func(key string) bool {
		for _, name := range names {
			if key == name {
				return true
			}
		}
		return false
	}
}

// repeating is a queue whose members have one turn after the other.
func repeating(limit int) *turns.Queue[string] {
	return &turns.Queue[string]{Limit: limit, Rest: func(string) int64 { return rest }}
}

// Queries are answered by the order, and no replay repeats them.
func TestTheOrderChangesNothing(t *testing.T) {
	late := who("b/4")
	late.Lane = 1
	q := repeating(1)
	q.Members = []turns.Member[string]{who("a/1"), late}
	q.Lanes = []turns.Lane{{Namespaces: []string{"gone", "a"}, Taken: map[string]int{"gone": 1, "a": 1}}}
	state := func() string {
		all, err := json.Marshal([]any{q.Members, q.Turns, q.Lanes})
		require.NoError(t, err)
		return string(all)
	}
	before := state()
	assert.Len(t, q.Order(2000), 2)
	assert.Len(t, q.Head(2000, 1), 1)
	assert.Len(t, q.Settled(), 2)
	assert.JSONEq(t, before, state())
}

// continued returns the queue of the next run.
func continued(t require.TestingT, q *turns.Queue[string], now int64) *turns.Queue[string] {
	type state struct {
		Members []turns.Member[string]
		Turns   []turns.Turn[string]
		Carried contract.Carried[string]
	}
	data, err := json.Marshal(state{q.Members, q.Turns, q.Carry(now)})
	require.NoError(t, err)
	var next state
	require.NoError(t, json.Unmarshal(data, &next))
	continued := &turns.Queue[string]{
		Members: next.Members, Turns: next.Turns, Limit: q.Limit, Weights: q.Weights, Alone: q.Alone, Rest: q.Rest,
	}
	continued.Resume(next.Carried)
	return continued
}

func TestTurnsGoRoundTheNamespaces(t *testing.T) {
	type act = func(q *turns.Queue[string])
	wants := func(names ...string) act {
		return func(q *turns.Queue[string]) {
			for _, name := range names {
				q.Add(0, who(name))
			}
		}
	}
	leaves := func(name string) act { return func(q *turns.Queue[string]) { q.Leave(name) } }
	have := func(count int) act {
		return func(q *turns.Queue[string]) {
			for range count {
				turn, begun := q.Begin(1000)
				require.True(t, begun)
				q.End(turn.Key)
			}
		}
	}
	hurries := func(name string) act { return func(q *turns.Queue[string]) { q.PutFirst(has(name)) } }
	due := func(name string, at int64) act { return func(q *turns.Queue[string]) { q.Member(name).NotBefore = at } }
	tests := map[string]struct {
		acts []act
		want string // the order at second 1000
	}{
		"one of each, however many one has": {
			[]act{wants("a/1", "a/2", "a/3", "a/4", "b/1", "c/1", "b/2")}, "a/1 b/1 c/1 a/2 b/2 a/3 a/4",
		},
		"a run that began with one line keeps it": {},
		"after its turn a member is the last of the round": {
			[]act{wants("a/1", "a/2", "b/1", "b/2"), have(1)}, "b/1 a/2 b/2 a/1",
		},
		"a new member comes after those that wait, and after those that have had a turn": {
			[]act{wants("a/1", "a/2", "b/1", "b/2"), have(1), wants("c/1")}, "b/1 a/2 c/1 b/2 a/1",
		},
		"when one of several leaves, its namespace keeps its place": {
			[]act{wants("a/1", "a/2", "b/1", "b/2"), leaves("a/1")}, "a/2 b/1 b/2",
		},
		"a member that leaves and asks again is the last": {
			[]act{wants("a/1", "b/1", "b/2"), leaves("a/1"), have(1), wants("a/1")}, "b/2 a/1 b/1",
		},
		"a namespace with nothing due is skipped and keeps its place": {
			[]act{wants("a/1", "b/1"), have(2), wants("b/2", "b/3", "a/2"), due("a/1", 0)}, "a/1 b/2 a/2 b/3 b/1",
		},
		"those that are not due come by their times": {
			[]act{wants("b/1", "a/1"), have(2), due("a/1", 1050)}, "a/1 b/1",
		},
		"a member put first comes before the rounds": {
			[]act{wants("a/1", "b/1", "b/2", "b/3"), hurries("b/2"), hurries("b/3")}, "b/3 b/2 a/1 b/1",
		},
		"once": {
			[]act{wants("a/1", "b/1", "b/2"), hurries("b/2"), have(1), due("b/2", 0)}, "a/1 b/1 b/2",
		},
		"a turn of a member put first counts in the rounds": {
			[]act{wants("a/1", "b/1", "a/2", "b/2"), hurries("a/2"), have(1)}, "b/1 a/1 b/2 a/2",
		},
		"it counts in what is shown too": {
			[]act{wants("a/1", "b/1", "a/2", "b/2"), hurries("a/2")}, "a/2 b/1 a/1 b/2",
		},
		"a turn that was found counts in the rounds": {
			[]act{wants("a/1", "a/2", "b/1"), func(q *turns.Queue[string]) {
				q.Hold(turns.Turn[string]{Member: who("a/1"), Began: 990})
				q.End("a/1")
			}},
			"b/1 a/2 a/1",
		},
		"those of a namespace go by their creation": {
			[]act{func(q *turns.Queue[string]) {
				for i, name := range []string{"a/3", "b/1", "a/1", "a/2"} {
					member := who(name)
					member.Created = []int64{30, 10, 10, 20}[i]
					q.Add(0, member)
				}
			}}, "a/1 b/1 a/2 a/3",
		},
		"as many a round as the weight says": {
			[]act{func(q *turns.Queue[string]) { q.Weights = map[string]int{"a": 2} }, wants("a/1", "a/2", "a/3", "a/4", "a/5", "b/1", "b/2")},
			"a/1 a/2 b/1 a/3 a/4 b/2 a/5",
		},
		"a weight counts over turns": {
			[]act{
				func(q *turns.Queue[string]) { q.Weights = map[string]int{"a": 2} }, wants("a/1", "a/2", "a/3", "b/1", "b/2"), have(1),
				due("a/1", 0),
			},
			"a/2 b/1 a/3 a/1 b/2",
		},
		"a lower lane has one turn after four": {
			[]act{wants("a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "c/1@1", "c/2@1")}, "a/1 b/1 a/2 b/2 c/1 a/3 b/3 c/2",
		},
		"only turns count during which a member of the lower lane waited": {
			[]act{wants("a/1", "a/2", "a/3", "a/4", "a/5", "a/6"), have(3), wants("b/1@1"), due("a/1", 0), due("a/2", 0)},
			"a/4 a/5 a/6 a/1 b/1 a/2 a/3",
		},
		"of three lanes none starves": {
			[]act{wants("a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "b/1@1", "b/2@1", "c/1@2", "c/2@2")},
			"a/1 a/2 a/3 a/4 b/1 c/1 a/5 a/6 b/2 c/2",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			q := repeating(1)
			for _, act := range test.acts {
				act(q)
				q = continued(t, q, 1000)
			}
			assert.Equal(t, test.want, keys(q.Order(1000)))
		})
	}
}

func TestANamespaceHasOneTurnAtATimeWhileOthersWait(t *testing.T) {
	q := &turns.Queue[string]{Limit: 9, Alone: true}
	q.Add(0, who("a/1"), who("a/2"), who("b/1"), who("a/3@1"), who("c/1@1"))
	assert.Equal(t, "a/1 b/1 c/1 a/2 a/3", keys(q.Order(1)))
	var order []string
	for turn, begun := q.Begin(1); begun; turn, begun = q.Begin(1) {
		order = append(order, turn.Key)
	}
	assert.Equal(t, "a/1 b/1 c/1 a/2 a/3", strings.Join(order, " "), "a namespace that is alone may have several")
}

func TestATurnThatCouldNotBeGivenGoesBack(t *testing.T) {
	q := &turns.Queue[string]{Limit: 9}
	q.Add(0, who("a/1"), who("a/2"), who("b/1"), who("c/1"))
	turn, _ := q.Begin(60)
	q.Requeue(turn, 60, 65)
	assert.Equal(t, "b/1 c/1 a/2 a/1", keys(q.Order(60)), "its namespace has had its turn")
	assert.EqualValues(t, 1, q.Next())
	for range 3 {
		_, begun := q.Begin(60)
		require.True(t, begun)
	}
	_, begun := q.Begin(64)
	assert.False(t, begun)
	assert.EqualValues(t, 65, q.Next())
	turn, _ = q.Begin(65)
	assert.Equal(t, "a/1", turn.Key)
	assert.EqualValues(t, 60, turn.Since)
}

func TestWhenTheQueueWakes(t *testing.T) {
	q := repeating(1)
	assert.Zero(t, q.Next())
	for name, at := range map[string]int64{"a": 500, "b": 300, "c": 100} {
		member := who(name)
		member.NotBefore = at
		q.Add(0, member)
	}
	q.Turns = append(q.Turns, turns.Turn[string]{Member: who("c")})
	assert.Zero(t, q.Next(), "the limit is reached")
	q.Limit = 2
	assert.EqualValues(t, 300, q.Next(), "the turn of c has to end first")
	q.Turns[0].Closing, q.Limit = true, 1
	assert.EqualValues(t, 300, q.Next())
}
