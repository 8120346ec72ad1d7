package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/contract"
)

// refIn is the reference of "namespace/name".
func refIn(name string) contract.ObjectRef {
	namespace, name, _ := strings.Cut(name, "/")
	return contract.ObjectRef{Namespace: namespace, Name: name, UID: "u-" + name}
}

func refNames(entries []contract.FDBQueueEntry) string {
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Ref.String())
	}
	return strings.Join(names, " ")
}

func TestTurnsGoRoundTheNamespaces(t *testing.T) {
	pace := fdbPace{Limit: 1, Retry: 10, Min: 100}
	type act = func(s *fdbTurns)
	wants := func(names ...string) act {
		return func(s *fdbTurns) {
			for _, name := range names {
				s.take(refIn(name), expire)
			}
		}
	}
	leaves := func(name string) act { return func(s *fdbTurns) { s.drop(refIn(name)) } }
	has := func(s *fdbTurns, now int64) {
		if turn, begun := s.begin(now, pace); begun {
			s.report(contract.FDBTurnReport{Ref: turn.Ref, Turn: turn.Turn, Ended: true, Outcome: contract.FDBTurnDone}, now, pace)
		}
	}
	turns := func(count int) act {
		return func(s *fdbTurns) {
			for range count {
				has(s, 1000)
			}
		}
	}
	hurries := func(name string) act {
		return func(s *fdbTurns) {
			s.hurry(contract.FDBQueueName{Namespace: refIn(name).Namespace, Name: refIn(name).Name})
		}
	}
	inOneLine := func(s *fdbTurns) { s.rounds.single = true }
	tests := map[string]struct {
		acts []act
		want string // the order at second 1000
	}{
		"one of each, however many one has": {
			[]act{wants("a/1", "a/2", "a/3", "a/4", "b/1", "c/1", "b/2")}, "a/1 b/1 c/1 a/2 b/2 a/3 a/4",
		},
		"a run that began with one line keeps it": {
			[]act{inOneLine, wants("a/1", "a/2", "b/1"), turns(1), wants("c/1")}, "a/2 b/1 c/1 a/1",
		},
		"who has had a turn is the last of the round": {
			[]act{wants("a/1", "a/2", "b/1", "b/2"), turns(1)}, "b/1 a/2 b/2 a/1",
		},
		"who is new comes after those that wait, and after who has had a turn": {
			[]act{wants("a/1", "a/2", "b/1", "b/2"), turns(1), wants("c/1")}, "b/1 a/2 c/1 b/2 a/1",
		},
		"who takes one of several back keeps the place of its namespace": {
			[]act{wants("a/1", "a/2", "b/1", "b/2"), leaves("a/1")}, "a/2 b/1 b/2",
		},
		"who goes and comes again is the last": {
			[]act{wants("a/1", "b/1", "b/2"), leaves("a/1"), turns(1), wants("a/1")}, "b/2 a/1 b/1",
		},
		"a namespace with nothing due is passed over and keeps its place": {
			[]act{wants("a/1", "b/1"), turns(2), wants("b/2", "b/3", "a/2"), func(s *fdbTurns) { s.entries[0].NotBefore = 0 }},
			"a/1 b/2 a/2 b/3 b/1",
		},
		"those that are not due come by their times": {
			[]act{wants("b/1", "a/1"), turns(2), func(s *fdbTurns) { s.entries[1].NotBefore = 1050 }}, "a/1 b/1",
		},
		"whom people put first comes before the rounds": {
			[]act{wants("a/1", "b/1", "b/2", "b/3"), hurries("b/2"), hurries("b/3")}, "b/3 b/2 a/1 b/1",
		},
		"once": {
			[]act{wants("a/1", "b/1", "b/2"), hurries("b/2"), turns(1), func(s *fdbTurns) { s.entries[2].NotBefore = 0 }},
			"a/1 b/1 b/2",
		},
		"a turn that people have given counts in the rounds": {
			[]act{wants("a/1", "b/1", "a/2", "b/2"), hurries("a/2"), turns(1)}, "b/1 a/1 b/2 a/2",
		},
		"a turn that was found counts in the rounds": {
			[]act{wants("a/1", "a/2", "b/1"), func(s *fdbTurns) {
				s.adopt(contract.FDBTurn{Ref: refIn("a/1"), Job: expire, Turn: 990}, pace)
			}},
			"b/1 a/2 a/1",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := &fdbTurns{}
			for _, act := range test.acts {
				act(s)
			}
			assert.Equal(t, test.want, refNames(s.order(1000)))
		})
	}
}

func TestSlotsGoRoundTheNamespaces(t *testing.T) {
	s := &fdbSlots{}
	ask := func(names ...string) {
		for _, name := range names {
			s.take(contract.FDBWishSlot, contract.FDBHolder{WorkflowID: name, Namespace: refIn(name).Namespace})
		}
	}
	order := func() string {
		var ids []string
		for _, holder := range s.order() {
			ids = append(ids, holder.WorkflowID)
		}
		return strings.Join(ids, " ")
	}
	ask("a/1", "a/2", "a/3", "b/1", "c/1")
	assert.Equal(t, "a/1 b/1 c/1 a/2 a/3", order())
	next, granted := s.grant(9, 50)
	require.True(t, granted)
	assert.Equal(t, contract.FDBHolder{WorkflowID: "a/1", Namespace: "a", Since: 50}, next)
	assert.Equal(t, "b/1 c/1 a/2 a/3", order())
	ask("b/2", "d/1")
	assert.Equal(t, "b/1 c/1 a/2 d/1 b/2 a/3", order())
	next, _ = s.grant(9, 60)
	s.requeue(next, 61)
	assert.Equal(t, "c/1 a/2 d/1 b/2 a/3 b/1", order(), "one that could not be told has had its turn")
	s.remove("c/1")
	assert.Equal(t, "a/2 d/1 b/2 a/3 b/1", order())
}

// What older workers have left to the next run names no namespaces: such backups are one line until they ask again.
func TestSlotsThatOlderWorkersHaveNotedAreUnderstood(t *testing.T) {
	var in contract.FDBThrottleInput
	require.NoError(t, json.Unmarshal([]byte(`{"cluster":"west","found":true,"waiting":[{"workflowId":"a/1","since":1},`+
		`{"workflowId":"a/2","since":2},{"workflowId":"b/1","since":3}]}`), &in))
	s := &fdbSlots{waiting: in.Waiting, rounds: fdbRounds{namespaces: in.Namespaces}}
	s.take(contract.FDBWishSlot, contract.FDBHolder{WorkflowID: "c/1", Namespace: "c", Since: 4})
	s.take(contract.FDBWishSlot, contract.FDBHolder{WorkflowID: "b/1", Namespace: "b", Since: 5})
	var got []string
	for range 4 {
		next, _ := s.grant(9, 10)
		got = append(got, next.WorkflowID)
	}
	assert.Equal(t, []string{"a/1", "c/1", "b/1", "a/2"}, got)
}

// passes counts the turns of each namespace that one with something to begin has seen, since it had, or had a turn itself.
type passes map[string]map[string]int

// keep forgets those that have nothing to begin.
func (p passes) keep(able []string) {
	for waiting := range p {
		if !slices.Contains(able, waiting) {
			delete(p, waiting)
		}
	}
}

// begun notes that a namespace has begun a turn while those, which it may be one of, could have. It returns what is wrong.
func (p passes) begun(namespace string, able []string, byHand bool) (wrong []string) {
	p.keep(able)
	slices.Sort(able)
	for _, waiting := range slices.Compact(able) {
		if p[waiting] == nil {
			p[waiting] = map[string]int{}
		}
		if waiting == namespace || byHand {
			continue
		}
		if p[waiting][namespace]++; p[waiting][namespace] > 1 {
			wrong = append(wrong, fmt.Sprintf("%s has waited for %d turns of %s", waiting, p[waiting][namespace], namespace))
		}
	}
	delete(p, namespace)
	return wrong
}

func drawName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "a", "a", "b", "c", "d"}).Draw(t, "namespace") + "/" +
		rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(t, "name")
}

// TestNobodyWaitsForTwoTurnsOfAnotherNamespace: whatever is asked, ends, or is put first, and however often the queue continues as
// new, a namespace with something due sees at most one turn of each other before its own; and what is shown first is begun first.
func TestNobodyWaitsForTwoTurnsOfAnotherNamespace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pace := fdbPace{Limit: rapid.IntRange(1, 3).Draw(t, "limit"), Retry: 10, Min: 100}
		s, seen, now := &fdbTurns{}, passes{}, int64(1000)
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			now += rapid.SampledFrom([]int64{0, 0, 1, 20, 150}).Draw(t, "later")
			ref := refIn(drawName(t))
			switch rapid.SampledFrom([]string{"ask", "ask", "delete", "leave", "end", "end", "continue", "hurry"}).Draw(t, "what") {
			case "ask":
				s.take(ref, expire)
			case "delete":
				s.take(ref, remove)
			case "leave":
				s.take(ref, contract.FDBJobNone)
			case "hurry":
				s.hurry(contract.FDBQueueName{Namespace: ref.Namespace, Name: ref.Name})
			case "end":
				if len(s.turns) > 0 {
					turn := s.turns[rapid.IntRange(0, len(s.turns)-1).Draw(t, "turn")]
					s.report(contract.FDBTurnReport{
						Ref: turn.Ref, Turn: turn.Turn, Ended: true,
						Outcome: rapid.SampledFrom([]contract.FDBTurnOutcome{
							contract.FDBTurnDone, contract.FDBTurnNotYet, contract.FDBTurnGone, contract.FDBTurnFailed,
						}).Draw(t, "outcome"),
					}, now, pace)
				}
			case "continue":
				s = continuedTurns(t, s)
			}
			able, _ := mayBegin(s, now)
			seen.keep(able)
			for beginsOne(t, s, now, pace, seen) {
			}
		}
	})
}

// mayBegin are the namespaces that could begin a turn, and what is shown as the next.
func mayBegin(s *fdbTurns, now int64) (able []string, first contract.FDBQueueEntry) {
	for _, entry := range slices.Backward(s.order(now)) {
		if entry.NotBefore <= now && s.turn(entry.Ref) < 0 {
			able, first = append(able, entry.Ref.Namespace), entry
		}
	}
	return able, first
}

// beginsOne has the next turn begin, and judges it.
func beginsOne(t *rapid.T, s *fdbTurns, now int64, pace fdbPace, seen passes) bool {
	require.Len(t, s.order(now), len(s.entries))
	able, first := mayBegin(s, now)
	turn, begun := s.begin(now, pace)
	if !begun {
		require.True(t, len(able) == 0 || s.running() >= pace.Limit, "%v may begin, and none does", able)
		return false
	}
	require.Equal(t, first.Ref, turn.Ref, "another is shown first")
	require.LessOrEqual(t, s.running(), pace.Limit)
	require.Empty(t, seen.begun(turn.Ref.Namespace, able, first.First))
	return true
}

// continuedTurns is what the next run makes of what one leaves to it.
func continuedTurns(t *rapid.T, s *fdbTurns) *fdbTurns {
	data, err := json.Marshal(contract.FDBExpiryQueueInput{Entries: s.entries, Turns: s.turns, Namespaces: s.rounds.among(s.lines())})
	require.NoError(t, err)
	var in contract.FDBExpiryQueueInput
	require.NoError(t, json.Unmarshal(data, &in))
	return &fdbTurns{entries: in.Entries, turns: in.Turns, rounds: fdbRounds{namespaces: in.Namespaces}}
}

// TestNobodyWaitsForTwoSlotsOfAnotherNamespace is the same of slots. Within a namespace they go in the order of asking.
func TestNobodyWaitsForTwoSlotsOfAnotherNamespace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		s, seen, now := &fdbSlots{}, passes{}, int64(1000)
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			now++
			id := drawName(t)
			asker := contract.FDBHolder{WorkflowID: id, Namespace: refIn(id).Namespace, Since: now}
			switch rapid.SampledFrom([]string{"ask", "ask", "ask", "release", "end", "end", "requeue", "continue"}).Draw(t, "what") {
			case "ask":
				s.take(contract.FDBWishSlot, asker)
			case "release":
				s.take(contract.FDBWishRelease, asker)
			case "end":
				if len(s.holders) > 0 {
					s.remove(s.holders[0].WorkflowID)
				}
			case "requeue":
				if len(s.holders) > 0 {
					s.requeue(s.holders[len(s.holders)-1], now)
				}
			case "continue":
				s = continuedSlots(t, s)
			}
			seen.keep(s.lines())
			for {
				waiting := slices.Clone(s.waiting)
				able := s.lines()
				next, granted := s.grant(limit, now)
				if !granted {
					require.True(t, len(waiting) == 0 || len(s.holders) >= limit)
					break
				}
				require.LessOrEqual(t, len(s.holders), limit)
				same := slices.IndexFunc(waiting, func(h contract.FDBHolder) bool { return h.Namespace == next.Namespace })
				require.Equal(t, waiting[same].WorkflowID, next.WorkflowID, "another of its namespace asked before")
				require.Empty(t, seen.begun(next.Namespace, able, false))
			}
		}
	})
}

func continuedSlots(t *rapid.T, s *fdbSlots) *fdbSlots {
	data, err := json.Marshal(contract.FDBThrottleInput{Holders: s.holders, Waiting: s.waiting, Namespaces: s.rounds.among(s.lines())})
	require.NoError(t, err)
	var in contract.FDBThrottleInput
	require.NoError(t, json.Unmarshal(data, &in))
	return &fdbSlots{holders: in.Holders, waiting: in.Waiting, rounds: fdbRounds{namespaces: in.Namespaces}}
}
