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
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// crowd is a queue with more members than it carries, and their objects.
type crowd struct {
	*turns.Queue[string]
	most    int
	objects map[string]turns.Member[string] // of those that wait or run
	now     int64
	slow    bool            // a listing takes time
	deliver func()          // hands the list to the queue; nil if no listing is under way
	out     map[string]bool // removed by an operator, and they have not asked since
}

func newCrowd(most, limit int) *crowd {
	return &crowd{
		Queue: &turns.Queue[string]{Most: []int{most}, Limit: limit}, most: most, objects: map[string]turns.Member[string]{},
		now: 1000, out: map[string]bool{},
	}
}

func namespaceOf(member turns.Member[string]) string { return member.Namespace }

// list does what the activity does: it lists the waiting members, and cuts the list to the room. The queue gets it later.
func (c *crowd) list() {
	c.Listing()
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
	front, beyond := contract.Front(waiting, c.most/2, namespaceOf, c.Carry(c.now).Namespaces(0), namespaces)
	c.deliver = func() {
		c.deliver = nil
		c.Refill(c.now, front, beyond)
	}
}

func (c *crowd) find() {
	c.list()
	c.deliver()
}

// asks creates another object, whose workflow asks for a turn.
func (c *crowd) asks(namespace string) turns.Member[string] {
	c.now++
	member := who(fmt.Sprintf("%s/%d", namespace, c.now))
	member.Created = c.now
	c.objects[member.Key] = member
	c.Add(c.now, member)
	return member
}

// begins begins the next turn, after a listing of the objects if that is due.
func (c *crowd) begins() (string, bool) {
	if c.RefillDue(c.now) {
		c.list()
		if !c.slow {
			c.deliver()
		}
	}
	turn, begun := c.Begin(c.now)
	return turn.Key, begun
}

func (c *crowd) ends(key string) {
	c.End(key)
	delete(c.objects, key)
}

// askAgain lets the removed members ask again.
func (c *crowd) askAgain() {
	for _, key := range slices.Sorted(maps.Keys(c.out)) {
		delete(c.out, key)
		if member, is := c.objects[key]; is && c.Member(key) == nil && c.Turn(key) == nil {
			c.Add(c.now, member)
		}
	}
}

// continues replaces the queue by that of the next run.
func (c *crowd) continues() {
	next := &turns.Queue[string]{
		Members: c.Members, Turns: c.Turns, Most: c.Most, Limit: c.Limit, Weights: c.Weights, Alone: c.Alone, Rest: c.Rest,
	}
	next.Resume(c.Carry(c.now))
	c.Queue, c.deliver = next, nil
}

// isLost lets the coordinator begin with nothing but the objects, also those of members with a turn.
func (c *crowd) isLost() {
	running := c.Turns
	c.Queue = &turns.Queue[string]{Most: c.Most, Limit: c.Limit, Weights: c.Weights, Alone: c.Alone}
	for _, turn := range running {
		c.Hold(turn)
	}
	clear(c.out)
	c.find()
}

// TestTurnsComeAsIfEverybodyWereCarried: no matter how few of the waiting members are carried, turns begin in the same order as if all
// were.
func TestTurnsComeAsIfEverybodyWereCarried(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
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
			require.LessOrEqual(t, len(c.Members), c.most)
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

// TestWhateverIsLostNobodyIs: members come and go, coordinators are terminated or continue as new, only some of the waiting members
// are carried, and a list of objects may be older than the requests since the listing began. The limit holds, no member has two turns,
// or one after it has left or was removed, and each has one in the end.
func TestWhateverIsLostNobodyIs(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		c := newCrowd(2*rapid.IntRange(2, 10).Draw(t, "half of the room"), rapid.IntRange(1, 3).Draw(t, "limit"))
		c.Alone, c.slow = rapid.Bool().Draw(t, "alone"), rapid.Bool().Draw(t, "slow")
		had, names := map[string]bool{}, rapid.IntRange(1, 20).Draw(t, "namespaces")
		begin := func() {
			for key, begun := c.begins(); begun; key, begun = c.begins() {
				require.False(t, had[key], "%s has two turns", key)
				require.Contains(t, c.objects, key, "it has left")
				require.NotContains(t, c.out, key, "an operator has removed it")
				had[key] = true
				require.LessOrEqual(t, len(c.Turns), c.Limit)
			}
			require.LessOrEqual(t, len(c.Members), c.most)
		}
		end := func() {
			if len(c.Turns) > 0 {
				c.ends(c.Turns[rapid.IntRange(0, len(c.Turns)-1).Draw(t, "ends")].Key)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			switch rapid.SampledFrom([]string{
				"ask", "ask", "end", "end", "leave", "lose", "continue", "deliver", "list", "remove", "again",
			}).Draw(t, "what") {
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
					delete(c.out, key)
				}
			case "lose":
				c.isLost()
			case "deliver":
				if c.deliver != nil {
					c.deliver()
				}
			case "list":
				if c.slow && c.deliver == nil {
					c.list()
				}
			case "remove":
				if keys := c.Waiting(func(string) bool { return true }); len(keys) > 0 {
					key := rapid.SampledFrom(keys).Draw(t, "who")
					c.Remove(key)
					c.out[key] = true
				}
			case "again":
				c.askAgain()
			case "continue":
				c.continues()
			}
			c.now += int64(rapid.SampledFrom([]int{0, 1, 30, 100}).Draw(t, "later"))
			begin()
		}
		c.askAgain()
		for range 2000 {
			if c.deliver != nil {
				c.deliver()
			}
			if c.Empty() {
				break
			}
			c.now += 60
			end()
			begin()
		}
		assert.True(t, c.Empty())
		assert.Empty(t, c.objects, "a member had no turn")
	})
}

// away is the first of ten members of a namespace; the queue carries half of four. It has had its turn, and its object does not show it.
func away(t *testing.T) (*crowd, turns.Turn[string]) {
	t.Helper()
	c := newCrowd(4, 1)
	c.Rest = func(string) int64 { return rest }
	for range 10 {
		c.asks("a")
	}
	turn, begun := c.Begin(c.now)
	require.True(t, begun)
	c.End(turn.Key)
	require.Nil(t, c.Member(turn.Key), "those beyond come before it")
	return c, turn
}

// TestTheNextRunKnowsWhoHadATurn: another turn of the same member has another number, and its rest.
func TestTheNextRunKnowsWhoHadATurn(t *testing.T) {
	c, turn := away(t)
	c.continues()
	c.find()
	member := c.Member(turn.Key)
	require.NotNil(t, member)
	assert.Equal(t, turn.Began+rest, member.NotBefore)
	c.PutFirst(has(turn.Key))
	again, _ := c.Begin(c.now)
	assert.Equal(t, turn.Key, again.Key)
	assert.Greater(t, again.Began, turn.Began)
}

// TestTheNextRunKnowsATurnThatAMemberDoesNot: it had that one before it asked, and its object does not show it.
func TestTheNextRunKnowsATurnThatAMemberDoesNot(t *testing.T) {
	q := &turns.Queue[string]{Limit: 1, Rest: func(string) int64 { return rest }}
	q.Hold(turns.Turn[string]{Member: who("a/1"), Began: 12}) // numbered on, as of several in one second
	q.End("a/1")
	q.Add(10, who("a/1"))
	turn, begun := continued(t, q, 10).Begin(12)
	require.True(t, begun)
	assert.Greater(t, turn.Began, int64(12))
}

// TestTheNextRunListsObjectsNoSooner: it lists them as rarely as if the run had gone on.
func TestTheNextRunListsObjectsNoSooner(t *testing.T) {
	c, _ := away(t)
	c.find()
	for _, member := range slices.Clone(c.Members) {
		c.Leave(member.Key)
	}
	c.continues()
	assert.False(t, c.RefillDue(c.now+59))
	assert.True(t, c.RefillDue(c.now+60))
}

// TestWhoIsNamedStaysWhenTheQueueIsFull: an operator has put it first, wherever it stands.
func TestWhoIsNamedStaysWhenTheQueueIsFull(t *testing.T) {
	q := &turns.Queue[string]{Most: []int{4}, Limit: 1}
	for n := range 4 {
		q.Add(0, who(fmt.Sprintf("a/%d", n)))
	}
	last := who("a/9")
	last.First = true
	q.Refill(0, []turns.Member[string]{who("a/8"), last}, contract.Beyond{Count: 5, Namespaces: []string{"a"}})
	assert.Len(t, q.Members, 3, "the others are cut to half")
	turn, _ := q.Begin(0)
	assert.Equal(t, "a/9", turn.Key)
}

// TestWhoAsksDuringAListing: the list may lack the member, or show what it was before; if the member leaves meanwhile it is out.
func TestWhoAsksDuringAListing(t *testing.T) {
	q := &turns.Queue[string]{Most: []int{4}, Limit: 1}
	q.Refill(0, nil, contract.Beyond{Count: 2, Namespaces: []string{"a"}})
	q.Listing()
	q.Add(1, who("a/stays"), who("a/leaves"))
	assert.Empty(t, q.Members, "others come before them")
	assert.Len(t, q.Waiting(func(string) bool { return true }), 2)
	q.Leave("a/leaves")
	q.Refill(2, []turns.Member[string]{who("a/leaves"), who("a/other")}, contract.Beyond{})
	assert.Equal(t, []string{"a/other", "a/stays"}, keysOf(q.Members))
}

// TestWhatEndsDuringAListing: the list may still have the turn, and its place would be lost.
func TestWhatEndsDuringAListing(t *testing.T) {
	q := &turns.Queue[string]{Limit: 1}
	q.Listing()
	q.End("a/over")
	q.Hold(turns.Turn[string]{Member: who("a/over"), Began: 1})
	q.Hold(turns.Turn[string]{Member: who("a/runs"), Began: 1})
	require.Len(t, q.Turns, 1)
	assert.Equal(t, "a/runs", q.Turns[0].Key)

	q.Add(2, who("b/asks"))
	q.Hold(turns.Turn[string]{Member: who("b/asks"), Began: 2})
	assert.Len(t, q.Turns, 2, "it has asked, and has used an earlier turn since")
	assert.Nil(t, q.Member("b/asks"))
}
