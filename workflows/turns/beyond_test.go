package turns_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/turns"
)

// crowd are more members than a queue carries, as objects tell of them.
type crowd struct {
	*turns.Queue[string]
	objects map[string]turns.Member[string] // of those that wait or run
	now     int64
	finds   int
}

func newCrowd(most, limit int) *crowd {
	return &crowd{Queue: &turns.Queue[string]{Most: most, Limit: limit}, objects: map[string]turns.Member[string]{}, now: 1000}
}

func namespaceOf(member turns.Member[string]) string { return member.Namespace }

// find is what an activity does: it lists who waits, and cuts the list to what there is room for.
func (c *crowd) find() {
	c.finds++
	var waiting []turns.Member[string]
	for key, member := range c.objects {
		if c.Turn(key) == nil {
			waiting = append(waiting, member)
		}
	}
	slices.SortFunc(waiting, func(a, b turns.Member[string]) int { return cmp.Compare(a.Created, b.Created) })
	var namespaces []string
	for _, member := range waiting {
		namespaces = append(namespaces, member.Namespace)
	}
	carried, _ := c.Carry()
	front, beyond := contract.Front(waiting, c.Most/2, namespaceOf, carried, namespaces)
	c.Refill(c.now, front, beyond)
}

// asks makes another object, whose workflow asks.
func (c *crowd) asks(namespace string) turns.Member[string] {
	c.now++
	member := who(fmt.Sprintf("%s/%d", namespace, c.now))
	member.Created = c.now
	c.objects[member.Key] = member
	c.Add(c.now, member)
	return member
}

// begins has the next turn begin, after a look at the objects if that is due.
func (c *crowd) begins() (string, bool) {
	if c.RefillDue(c.now) {
		c.find()
	}
	turn, begun := c.Begin(c.now)
	return turn.Key, begun
}

func (c *crowd) ends(key string) {
	c.End(key)
	delete(c.objects, key)
}

// continues is what the next run makes of it.
func (c *crowd) continues() {
	namespaces, beyond := c.Carry()
	next := &turns.Queue[string]{Members: c.Members, Turns: c.Turns, Most: c.Most, Limit: c.Limit, Weights: c.Weights, Alone: c.Alone}
	next.Resume(namespaces, beyond)
	c.Queue = next
}

// isLost has the coordinator begin with nothing but what objects tell: also who has a turn.
func (c *crowd) isLost() {
	running := c.Turns
	c.Queue = &turns.Queue[string]{Most: c.Most, Limit: c.Limit, Weights: c.Weights, Alone: c.Alone}
	for _, turn := range running {
		c.Hold(turn)
	}
	c.find()
}

// TestTurnsComeAsIfEverybodyWereCarried: whoever waits, and however few of them are carried, turns begin in the order in which
// they would if all were.
func TestTurnsComeAsIfEverybodyWereCarried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(2*rapid.IntRange(2, 12).Draw(t, "half of the room"), 1)
		all := &turns.Queue[string]{Limit: 1}
		namespaces := rapid.IntRange(1, 40).Draw(t, "namespaces")
		for range rapid.IntRange(1, 150).Draw(t, "members") {
			namespace := min(rapid.IntRange(0, namespaces).Draw(t, "namespace"), rapid.IntRange(0, namespaces).Draw(t, "or"))
			all.Add(0, c.asks(fmt.Sprintf("n%02d", namespace)))
		}
		c.find() // those that were not admitted
		for range 400 {
			c.now += 60
			if rapid.IntRange(0, 5).Draw(t, "continues") == 5 {
				c.continues()
			}
			require.LessOrEqual(t, len(c.Members), c.Most)
			want, more := all.Begin(c.now)
			got, begun := c.begins()
			require.Equal(t, more, begun)
			require.Equal(t, want.Key, got)
			if !more {
				break
			}
			all.End(want.Key)
			c.ends(got)
		}
		assert.True(t, c.Empty() || c.RefillDue(c.now+60))
	})
}

// TestWhateverIsLostNobodyIs: members come and go, coordinators are terminated or continue as new, and only some of those that
// wait are carried. The limit holds, nobody has two turns, everybody has one in the end, and of every namespace that waits no
// other has many turns before its own.
func TestWhateverIsLostNobodyIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(2*rapid.IntRange(2, 10).Draw(t, "half of the room"), rapid.IntRange(1, 3).Draw(t, "limit"))
		c.Alone = rapid.Bool().Draw(t, "alone")
		had, names := map[string]bool{}, rapid.IntRange(1, 20).Draw(t, "namespaces")
		begin := func() {
			for key, begun := c.begins(); begun; key, begun = c.begins() {
				require.False(t, had[key], "%s has two turns", key)
				require.Contains(t, c.objects, key)
				had[key] = true
				require.LessOrEqual(t, len(c.Turns), c.Limit)
			}
			require.LessOrEqual(t, len(c.Members), c.Most)
		}
		end := func() {
			if len(c.Turns) > 0 {
				c.ends(c.Turns[rapid.IntRange(0, len(c.Turns)-1).Draw(t, "ends")].Key)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			switch rapid.SampledFrom([]string{"ask", "ask", "end", "end", "leave", "lose", "continue"}).Draw(t, "what") {
			case "ask":
				for range rapid.IntRange(1, 20).Draw(t, "as many") {
					c.asks(fmt.Sprintf("n%02d", rapid.IntRange(1, names).Draw(t, "namespace")))
				}
			case "end":
				end()
			case "leave":
				if keys := slices.Sorted(maps.Keys(c.objects)); len(keys) > 0 {
					key := rapid.SampledFrom(keys).Draw(t, "who")
					c.Leave(key)
					c.ends(key)
				}
			case "lose":
				c.isLost()
			case "continue":
				c.continues()
			}
			c.now += int64(rapid.SampledFrom([]int{0, 1, 30, 100}).Draw(t, "later"))
			begin()
		}
		for range 2000 {
			if c.Empty() {
				break
			}
			c.now += 60
			end()
			begin()
		}
		assert.True(t, c.Empty())
		assert.Empty(t, c.objects, "somebody had no turn")
	})
}
