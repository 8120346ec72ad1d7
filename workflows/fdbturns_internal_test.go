package workflows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/contract"
)

const (
	expire = contract.FDBJobExpire
	remove = contract.FDBJobDelete
)

func turnRef(name string) contract.ObjectRef {
	return contract.ObjectRef{Namespace: "team", Name: name, UID: "u-" + name}
}

// shownTurns is "names of the entries with their times | turns".
func shownTurns(s *fdbTurns) string {
	var entries, turns []string
	for _, entry := range s.entries {
		text := entry.Ref.Name
		if entry.NotBefore != 0 {
			text += fmt.Sprintf("@%d", entry.NotBefore)
		}
		entries = append(entries, text+string(entry.Outcome))
	}
	for _, turn := range s.turns {
		text := fmt.Sprintf("%s:%d", turn.Ref.Name, turn.Turn)
		if turn.Closing {
			text += "~"
		}
		if turn.ClosedSince != 0 {
			text += "?"
		}
		turns = append(turns, text)
	}
	return strings.Join(entries, " ") + " | " + strings.Join(turns, " ")
}

func TestTurnsOfTheQueue(t *testing.T) {
	pace := fdbPace{Limit: 1, Retry: 10, Min: 100}
	type act = func(s *fdbTurns)
	wants := func(name string, job contract.FDBJob) act { return func(s *fdbTurns) { s.take(turnRef(name), job) } }
	begins := func(now int64) act { return func(s *fdbTurns) { s.begin(now, pace) } }
	ends := func(name string, turn, now int64, outcome contract.FDBTurnOutcome) act {
		return func(s *fdbTurns) {
			s.report(contract.FDBTurnReport{Ref: turnRef(name), Turn: turn, Ended: true, Outcome: outcome}, now, pace)
		}
	}
	closes := func(name string, turn int64) act {
		return func(s *fdbTurns) {
			s.report(contract.FDBTurnReport{Ref: turnRef(name), Turn: turn, Closing: true}, 0, pace)
		}
	}
	adopts := func(name string, turn int64, closing bool) act {
		return func(s *fdbTurns) {
			s.adopt(contract.FDBTurn{Ref: turnRef(name), Job: expire, Turn: turn, Closing: closing}, pace)
		}
	}
	hurries := func(name string) act {
		return func(s *fdbTurns) { s.hurry(contract.FDBQueueName{Namespace: "team", Name: name}) }
	}
	tests := map[string]struct {
		acts []act
		want string
	}{
		"the first has its turn and goes to the end": {[]act{wants("a", expire), wants("b", expire), begins(1000)}, "b a@1100 | a:1000"},
		"who is there keeps its place":               {[]act{wants("a", expire), wants("b", expire), wants("a", expire)}, "a b | "},
		"who wants nothing goes":                     {[]act{wants("a", expire), wants("b", expire), wants("a", "")}, "b | "},
		"a turn goes on without its entry":           {[]act{wants("a", expire), begins(1000), wants("a", "")}, " | a:1000"},
		"the limit holds":                            {[]act{wants("a", expire), wants("b", expire), begins(1000), begins(1001)}, "b a@1100 | a:1000"},
		"what terminates does not count": {
			[]act{wants("a", expire), wants("b", expire), begins(1000), closes("a", 1000), begins(1001)}, "a@1100 b@1101 | a:1000~ b:1001",
		},
		"what terminates blocks its own backup": {
			[]act{wants("a", expire), begins(1000), closes("a", 1000), hurries("a"), begins(1001)}, "a | a:1000~",
		},
		"a deletion waits for nothing but the turn that runs": {
			[]act{wants("a", expire), wants("b", expire), begins(1000), wants("a", remove), begins(1001)}, "b a | a:1000",
		},
		"one that is not due is passed over": {
			[]act{wants("a", expire), begins(1000), ends("a", 1000, 1010, contract.FDBTurnDone), wants("b", expire), begins(1011)},
			"a@1100Done b@1111 | b:1011",
		},
		"not due is not begun": {
			[]act{wants("a", expire), begins(1000), ends("a", 1000, 1010, contract.FDBTurnRefused), begins(1099)}, "a@1100Refused | ",
		},
		"due is begun": {
			[]act{wants("a", expire), begins(1000), ends("a", 1000, 1010, contract.FDBTurnRefused), begins(1100)},
			"a@1200Refused | a:1100",
		},
		"what could not be done is tried again soon": {
			[]act{wants("a", expire), begins(1000), ends("a", 1000, 1050, contract.FDBTurnNotYet)}, "a@1060NotYet | ",
		},
		"what failed is tried again in its next turn": {
			[]act{wants("a", expire), begins(1000), ends("a", 1000, 1050, contract.FDBTurnFailed)}, "a@1100Failed | ",
		},
		"a deletion that failed is tried again soon": {
			[]act{wants("a", remove), begins(1000), ends("a", 1000, 1050, contract.FDBTurnFailed)}, "a@1060Failed | ",
		},
		"a deletion that is done leaves": {
			[]act{wants("a", remove), begins(1000), ends("a", 1000, 1050, contract.FDBTurnDone)}, " | ",
		},
		"a deletion with nothing to do leaves": {
			[]act{wants("a", remove), begins(1000), ends("a", 1000, 1050, contract.FDBTurnNothing)}, " | ",
		},
		"what is gone leaves, whatever was wanted": {
			[]act{wants("a", expire), begins(1000), wants("a", remove), ends("a", 1000, 1050, contract.FDBTurnGone)}, " | ",
		},
		"an expiration that is done does not stand for the deletion that is wanted now": {
			[]act{wants("a", expire), begins(1000), wants("a", remove), ends("a", 1000, 1050, contract.FDBTurnDone)}, "aDone | ",
		},
		"what is told of another turn is old": {
			[]act{wants("a", expire), begins(1000), ends("a", 999, 1050, contract.FDBTurnDone), closes("a", 1)}, "a@1100 | a:1000",
		},
		"what is told of nobody is harmless": {[]act{ends("a", 999, 1050, contract.FDBTurnDone), closes("b", 1)}, " | "},
		"first at once": {
			[]act{wants("a", expire), begins(1000), ends("a", 1000, 1001, contract.FDBTurnDone), wants("b", expire), hurries("a"), begins(1002)},
			"b a@1102Done | a:1002",
		},
		"no number twice": {
			[]act{
				wants("a", expire), begins(1000), ends("a", 1000, 1000, contract.FDBTurnDone), hurries("a"), begins(1000),
				ends("a", 1001, 1000, contract.FDBTurnDone), wants("a", ""), wants("a", expire), begins(1000),
			},
			"a@1100 | a:1002",
		},
		"what is found counts, goes to the end and rests": {
			[]act{wants("a", expire), wants("b", expire), adopts("a", 990, false), begins(1000)}, "b a@1090 | a:990",
		},
		"of several pods of a backup the last counts": {
			[]act{wants("a", expire), adopts("a", 980, true), adopts("a", 990, false), adopts("a", 970, true)}, "a@1090 | a:990",
		},
		"one whose pods all terminate does not count": {
			[]act{wants("a", expire), wants("b", expire), adopts("a", 990, true), begins(1000)}, "a@1090 b@1100 | a:990~ b:1000",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := &fdbTurns{}
			for _, act := range test.acts {
				act(s)
			}
			assert.Equal(t, test.want, shownTurns(s))
		})
	}
}

func TestATurnThatWasLostIsStartedAgainWhenItIsCertain(t *testing.T) {
	s := &fdbTurns{turns: []contract.FDBTurn{{Ref: turnRef("a"), Job: expire, Turn: 1000}}}
	ask := func(now int64) bool {
		turn, again := s.closed(turnRef("a"), now, fdbPace{Limit: 1})
		return again && turn.Turn == 1000 && turn.Job == expire
	}
	assert.False(t, ask(1100))
	assert.True(t, s.doubtful())
	assert.False(t, ask(1159))
	assert.True(t, ask(1160))
	assert.False(t, s.doubtful(), "it has been started again")
	assert.False(t, ask(1170), "and has its time anew")
	s.runs(turnRef("a"))
	assert.False(t, ask(1300))
	assert.Equal(t, " | a:1000?", shownTurns(s))
	s.report(contract.FDBTurnReport{Ref: turnRef("a"), Turn: 1000, Closing: true}, 1301, fdbPace{})
	assert.Equal(t, " | a:1000~", shownTurns(s), "who speaks runs")
	_, again := s.closed(turnRef("b"), 1400, fdbPace{Limit: 1})
	assert.False(t, again)
}

// Started again, it may make its pod anew, beside those that have begun since its own went into termination.
func TestATurnInTerminationIsStartedAgainWhenThereIsAPlaceForIt(t *testing.T) {
	pace := fdbPace{Limit: 1}
	s := &fdbTurns{
		entries: []contract.FDBQueueEntry{{Ref: turnRef("c"), Job: expire}},
		turns: []contract.FDBTurn{
			{Ref: turnRef("a"), Job: expire, Turn: 1000, Closing: true}, {Ref: turnRef("b"), Job: expire, Turn: 1010},
		},
	}
	for _, now := range []int64{1100, 1160, 1220} {
		_, again := s.closed(turnRef("a"), now, pace)
		assert.False(t, again, now)
	}
	s.report(contract.FDBTurnReport{Ref: turnRef("b"), Turn: 1010, Ended: true}, 1230, pace)
	_, begun := s.begin(1230, pace)
	assert.False(t, begun, "the place is kept for it")
	turn, again := s.closed(turnRef("a"), 1280, pace)
	assert.True(t, again)
	assert.EqualValues(t, 1000, turn.Turn)
	assert.Equal(t, "c | a:1000", shownTurns(s), "it counts")
}

func TestWhenTheQueueWakes(t *testing.T) {
	s := &fdbTurns{}
	assert.Zero(t, s.next(1))
	s.entries = []contract.FDBQueueEntry{
		{Ref: turnRef("a"), NotBefore: 500}, {Ref: turnRef("b"), NotBefore: 300}, {Ref: turnRef("c"), NotBefore: 100},
	}
	s.turns = []contract.FDBTurn{{Ref: turnRef("c")}}
	assert.EqualValues(t, 300, s.next(2), "the turn of c has to end first")
	assert.Zero(t, s.next(1), "the limit is reached")
	s.turns[0].Closing = true
	assert.EqualValues(t, 300, s.next(1))
}
