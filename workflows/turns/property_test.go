package turns_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/turns"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// model is what must be true of a queue, no matter what happens to it.
type model struct {
	*turns.Queue[string]
	now   int64
	waits map[string]bool
	// seen counts the turns of each namespace that another of its lane has seen since it had something due, or had a turn itself.
	seen map[place]map[string]int
	// passed counts the turns of higher lanes that a lane has seen in the same way.
	passed map[int]int
	begun  map[string]int64 // when the last turn of each began
}

type place struct {
	lane      int
	namespace string
}

func drawModel(t *rapid.T) *model {
	q := &turns.Queue[string]{
		Limit: rapid.IntRange(1, 3).Draw(t, "limit"), Alone: rapid.Bool().Draw(t, "alone"),
		Weights: map[string]int{"a": rapid.IntRange(1, 3).Draw(t, "weight of a"), "b": rapid.IntRange(0, 2).Draw(t, "weight of b")},
	}
	if rapid.Bool().Draw(t, "repeating") {
		q.Rest = func(string) int64 { return rest }
	}
	return &model{
		Queue: q, now: 1000, waits: map[string]bool{}, seen: map[place]map[string]int{}, passed: map[int]int{}, begun: map[string]int64{},
	}
}

func drawMember(t *rapid.T) turns.Member[string] {
	name := rapid.SampledFrom([]string{"a", "a", "a", "b", "c", "d"}).Draw(t, "namespace") + "/" +
		rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(t, "name")
	member := who(name)
	member.Lane = map[byte]int{'4': 1, '5': 2}[name[2]]
	return member
}

// happens sends an event to the queue.
func (m *model) happens(t *rapid.T) {
	m.now += rapid.SampledFrom([]int64{0, 0, 1, 20, 150}).Draw(t, "later")
	member := drawMember(t)
	switch rapid.SampledFrom([]string{
		"ask", "ask", "ask", "leave", "end", "end", "hold", "hurry", "requeue", "lose", "continue",
	}).Draw(t, "what") {
	case "ask":
		if m.Member(member.Key) == nil && (m.Rest != nil || m.Turn(member.Key) == nil) {
			m.Add(m.now, member)
			m.waits[member.Key] = true
		}
	case "leave":
		m.Leave(member.Key)
		delete(m.waits, member.Key)
	case "end":
		if turn := m.draw(t); turn != nil {
			m.End(turn.Key)
		}
	case "hold":
		m.Hold(turns.Turn[string]{Member: member, Began: m.now + 1})
		m.begun[member.Key] = m.Turn(member.Key).Began
		if m.Rest == nil {
			delete(m.waits, member.Key)
		}
		m.forgive(place{member.Lane, member.Namespace})
	case "hurry":
		assert.Equal(t, m.waits[member.Key], m.PutFirst(has(member.Key)))
	case "requeue":
		if turn := m.draw(t); turn != nil && m.Rest == nil {
			m.Requeue(*turn, m.now, m.now+retry)
			m.waits[turn.Key] = true
		}
	case "lose":
		if turn := m.draw(t); turn != nil {
			m.MarkClosed(turn.Key, m.now)
			m.Revive(turn.Key)
		}
	case "continue":
		m.now++ // a run lasts that long
		m.Queue = continued(t, m.Queue, m.now)
	}
}

func (m *model) draw(t *rapid.T) *turns.Turn[string] {
	if len(m.Turns) == 0 {
		return nil
	}
	turn := m.Turns[rapid.IntRange(0, len(m.Turns)-1).Draw(t, "turn")]
	return &turn
}

// due returns the members that could begin a turn now.
func (m *model) due() []turns.Member[string] {
	var due []turns.Member[string]
	for _, member := range m.Order(m.now) {
		if member.NotBefore <= m.now && m.Turn(member.Key) == nil {
			due = append(due, member)
		}
	}
	return due
}

// forgive resets the counts of namespaces and lanes that have nothing due any more, or have had a turn.
func (m *model) forgive(had ...place) {
	able, lanes := map[place]bool{}, map[int]bool{}
	for _, member := range m.due() {
		able[place{member.Lane, member.Namespace}], lanes[member.Lane] = true, true
	}
	maps.DeleteFunc(m.seen, func(p place, _ map[string]int) bool { return !able[p] || slices.Contains(had, p) })
	maps.DeleteFunc(m.passed, func(lane, _ int) bool { return !lanes[lane] })
}

// begins begins the next turn, and judges it.
func (m *model) begins(t *rapid.T) bool {
	due, running := m.due(), m.Running()
	active := map[string]bool{}
	for _, turn := range m.Turns {
		active[turn.Namespace] = true
	}
	turn, begun := m.Begin(m.now)
	if !begun {
		require.True(t, len(due) == 0 || running >= m.Limit, "%s may begin, and none does", keys(due))
		return false
	}
	require.LessOrEqual(t, m.Running(), m.Limit)
	require.Equal(t, due[0].Key, turn.Key, "another is shown first")
	require.Greater(t, turn.Began, m.begun[turn.Key], "two turns of one number")
	if m.Rest == nil {
		delete(m.waits, turn.Key)
	}
	m.begun[turn.Key] = turn.Began
	switch {
	case turn.First:
	case m.Alone:
		for _, other := range due {
			require.False(t, active[turn.Namespace] && !active[other.Namespace], "%s has one, and %s waits", turn.Key, other.Key)
		}
	default:
		m.counts(t, turn, due)
	}
	m.forgive(place{turn.Lane, turn.Namespace})
	return true
}

// counts judges how long the others wait.
func (m *model) counts(t *rapid.T, turn turns.Turn[string], due []turns.Member[string]) {
	lanes := map[int]bool{}
	for _, other := range due {
		lanes[other.Lane] = true
		at := place{other.Lane, other.Namespace}
		if m.seen[at] == nil {
			m.seen[at] = map[string]int{}
		}
	}
	for at, seen := range m.seen {
		if at.lane != turn.Lane || at.namespace == turn.Namespace {
			continue
		}
		seen[turn.Namespace]++
		require.LessOrEqual(t, seen[turn.Namespace], max(1, m.Weights[turn.Namespace]), "%s waits for %s", at.namespace, turn.Namespace)
	}
	delete(m.passed, turn.Lane)
	for lane := range lanes {
		if lane > turn.Lane {
			m.passed[lane]++
			require.LessOrEqual(t, m.passed[lane], 4+2, "lane %d is skipped", lane)
		}
	}
}

// TestWhateverHappens: the limit holds, no member has two turns, and none is lost. A namespace with a member that is due waits for one
// round of each other of its lane at most, and a lane for four turns of higher ones at most, and those of the lanes between. The turns
// that begin are those that are shown first, in their order.
func TestWhateverHappens(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			m.happens(t)
			m.forgive()
			due := m.due()
			require.Equal(t, keys(due), keys(allOf(m.only(t, due), m.now)), "the order is not that of the turns")
			for m.begins(t) {
			}
			require.Len(t, m.Order(m.now), len(m.Members))
			require.ElementsMatch(t, slices.Collect(maps.Keys(m.waits)), keysOf(m.Members))
			taken := map[string]bool{}
			for _, turn := range m.Turns {
				require.False(t, taken[turn.Key], "%s has two turns", turn.Key)
				taken[turn.Key] = true
				require.True(t, m.Rest != nil || m.Member(turn.Key) == nil, "%s has a turn and waits", turn.Key)
			}
		}
	})
}

func keysOf(members []turns.Member[string]) []string {
	keys := []string{}
	for _, member := range members {
		keys = append(keys, member.Key)
	}
	return keys
}

// only returns a copy of the queue with the turns that run, in which nobody else waits.
func (m *model) only(t *rapid.T, who []turns.Member[string]) *turns.Queue[string] {
	q := continued(t, m.Queue, m.now)
	for _, member := range slices.Clone(q.Members) {
		if !slices.ContainsFunc(who, func(w turns.Member[string]) bool { return w.Key == member.Key }) {
			q.Leave(member.Key)
		}
	}
	return q
}

// allOf returns the members whose turns begin, one after the other, each of which ends when it is the oldest and another is to begin.
func allOf(q *turns.Queue[string], now int64) []turns.Member[string] {
	var all []turns.Member[string]
	for {
		for len(q.Turns) > 0 && q.Running() >= q.Limit {
			q.End(q.Turns[0].Key)
		}
		turn, begun := q.Begin(now)
		if !begun {
			return all
		}
		all = append(all, turn.Member)
	}
}

// TestSharesAreTheWeights: among namespaces that always have something due, each has its weight of every round.
func TestSharesAreTheWeights(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		q := &turns.Queue[string]{Limit: rapid.IntRange(1, 4).Draw(t, "limit"), Weights: map[string]int{}}
		round, number := 0, 0
		ask := func(namespace string) {
			number++
			q.Add(0, who(fmt.Sprintf("%s/%d", namespace, number)))
		}
		for _, namespace := range []string{"a", "b", "c", "d"} {
			q.Weights[namespace] = rapid.IntRange(1, 5).Draw(t, "weight")
			round += q.Weights[namespace]
			for range q.Weights[namespace] + 1 {
				ask(namespace)
			}
		}
		had, rounds := map[string]int{}, rapid.IntRange(1, 10).Draw(t, "rounds")
		for range rounds * round {
			turn, begun := q.Begin(1)
			require.True(t, begun)
			had[turn.Namespace]++
			ask(turn.Namespace)
			if len(q.Turns) == q.Limit {
				q.End(q.Turns[rapid.IntRange(0, len(q.Turns)-1).Draw(t, "ends")].Key)
			}
		}
		for namespace, weight := range q.Weights {
			assert.Equal(t, rounds*weight, had[namespace], namespace)
		}
	})
}
