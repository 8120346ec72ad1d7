package expiryqueue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/turns"
)

const (
	expire = contract.FDBJobExpire
	remove = contract.FDBJobDelete
)

func turnRef(name string) contract.ObjectRef {
	return contract.ObjectRef{Namespace: "team", Name: name, UID: "u-" + name}
}

// shownTurns is "names of the entries with their times | turns".
func shownTurns(s *turnStates) string {
	var entries, running []string
	for _, entry := range turns.Each(s.Members, fdbEntryOf) {
		text := entry.Ref.Name
		if entry.NotBefore != 0 {
			text += fmt.Sprintf("@%d", entry.NotBefore)
		}
		entries = append(entries, text+string(entry.Outcome))
	}
	for _, turn := range s.running() {
		text := fmt.Sprintf("%s:%d", turn.Ref.Name, turn.Turn)
		if turn.Closing {
			text += "~"
		}
		if turn.ClosedSince != 0 {
			text += "?"
		}
		running = append(running, text)
	}
	return strings.Join(entries, " ") + " | " + strings.Join(running, " ")
}

func TestTurnsOfTheQueue(t *testing.T) {
	pace := pace{Limit: 1, Retry: 10, Min: 100}
	type act = func(s *turnStates)
	wants := func(name string, job contract.FDBJob) act {
		return func(s *turnStates) { s.request(turnRef(name), job, 0) }
	}
	begins := func(now int64) act { return func(s *turnStates) { s.Begin(now) } }
	ends := func(name string, turn, now int64, outcome contract.FDBTurnOutcome) act {
		return func(s *turnStates) {
			s.report(contract.FDBTurnReport{Ref: turnRef(name), Turn: turn, Ended: true, Outcome: outcome}, now)
		}
	}
	closes := func(name string, turn int64) act {
		return func(s *turnStates) {
			s.report(contract.FDBTurnReport{Ref: turnRef(name), Turn: turn, Closing: true}, 0)
		}
	}
	adopts := func(name string, turn int64, closing bool) act {
		return func(s *turnStates) {
			s.Hold(fdbTurnOf(contract.FDBTurn{Ref: turnRef(name), Job: expire, Turn: turn, Closing: closing}))
		}
	}
	hurries := func(name string) act {
		return func(s *turnStates) { s.PutFirst(called(contract.FDBQueueName{Namespace: "team", Name: name})) }
	}
	tests := map[string]struct {
		acts []act
		want string
	}{
		"the first has its turn and goes to the end": {[]act{wants("a", expire), wants("b", expire), begins(1000)}, "b a@1100 | a:1000"},
		"an entry keeps its place":                   {[]act{wants("a", expire), wants("b", expire), wants("a", expire)}, "a b | "},
		"one that wants nothing leaves":              {[]act{wants("a", expire), wants("b", expire), wants("a", "")}, "b | "},
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
		"one that is not due is skipped": {
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
		"what could not be done is retried soon": {
			[]act{wants("a", expire), begins(1000), ends("a", 1000, 1050, contract.FDBTurnNotYet)}, "a@1060NotYet | ",
		},
		"what failed is retried in its next turn": {
			[]act{wants("a", expire), begins(1000), ends("a", 1000, 1050, contract.FDBTurnFailed)}, "a@1100Failed | ",
		},
		"a deletion that failed is retried soon": {
			[]act{wants("a", remove), begins(1000), ends("a", 1000, 1050, contract.FDBTurnFailed)}, "a@1060Failed | ",
		},
		"a deletion that is done leaves": {
			[]act{wants("a", remove), begins(1000), ends("a", 1000, 1050, contract.FDBTurnDone)}, " | ",
		},
		"a deletion with nothing to do leaves": {
			[]act{wants("a", remove), begins(1000), ends("a", 1000, 1050, contract.FDBTurnNothing)}, " | ",
		},
		"what is gone leaves, no matter what was wanted": {
			[]act{wants("a", expire), begins(1000), wants("a", remove), ends("a", 1000, 1050, contract.FDBTurnGone)}, " | ",
		},
		"an expiration that is done does not stand for the deletion that is wanted now": {
			[]act{wants("a", expire), begins(1000), wants("a", remove), ends("a", 1000, 1050, contract.FDBTurnDone)}, "aDone | ",
		},
		"a report of another turn is old": {
			[]act{wants("a", expire), begins(1000), ends("a", 999, 1050, contract.FDBTurnDone), closes("a", 1)}, "a@1100 | a:1000",
		},
		"a report of an unknown turn is harmless": {[]act{ends("a", 999, 1050, contract.FDBTurnDone), closes("b", 1)}, " | "},
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
			s := &turnStates{}
			s.at(pace)
			for _, act := range test.acts {
				act(s)
			}
			assert.Equal(t, test.want, shownTurns(s))
		})
	}
}

func ongoing(limit int, running ...contract.FDBTurn) *turnStates {
	s := &turnStates{}
	s.at(pace{Limit: limit})
	for _, turn := range running {
		s.Turns = append(s.Turns, fdbTurnOf(turn))
	}
	return s
}

func TestATurnThatWasLostIsStartedAgain(t *testing.T) {
	s := ongoing(1, contract.FDBTurn{Ref: turnRef("a"), Job: expire, Turn: 1000})
	assert.Zero(t, s.MarkClosed(turnRef("a"), 1100))
	assert.EqualValues(t, 59, s.MarkClosed(turnRef("a"), 1159))
	s.Revive(turnRef("a"))
	assert.Equal(t, " | a:1000", shownTurns(s), "it is started again")
	assert.Zero(t, s.MarkClosed(turnRef("a"), 1170), "and has its time again")
	s.MarkRunning(turnRef("a"))
	assert.Zero(t, s.MarkClosed(turnRef("a"), 1300))
	assert.Equal(t, " | a:1000?", shownTurns(s))
	s.report(contract.FDBTurnReport{Ref: turnRef("a"), Turn: 1000, Closing: true}, 1301)
	assert.Equal(t, " | a:1000~", shownTurns(s), "a turn that reports runs")
	assert.Negative(t, s.MarkClosed(turnRef("b"), 1400))
}

// Started again, it may create its pod again, beside turns that have begun since its own pod went into termination.
func TestATurnInTerminationIsStartedAgainWhenThereIsAPlaceForIt(t *testing.T) {
	s := ongoing(1, contract.FDBTurn{Ref: turnRef("a"), Job: expire, Turn: 1000, Closing: true},
		contract.FDBTurn{Ref: turnRef("b"), Job: expire, Turn: 1010})
	s.request(turnRef("c"), expire, 0)
	for _, now := range []int64{1100, 1160, 1220} {
		s.MarkClosed(turnRef("a"), now)
		s.Revive(turnRef("a"))
		assert.Equal(t, "c | a:1000~? b:1010", shownTurns(s), now)
	}
	s.report(contract.FDBTurnReport{Ref: turnRef("b"), Turn: 1010, Ended: true}, 1230)
	_, begun := s.Begin(1230)
	assert.False(t, begun, "the place is kept for it")
	s.Revive(turnRef("a"))
	assert.Equal(t, "c | a:1000", shownTurns(s), "it counts")
}

// crowded returns a queue that carries as many as it can, and a list with others.
func crowded(found ...contract.FDBQueueEntry) (*turnStates, contract.FDBExpiriesFound) {
	s := ongoing(1)
	s.Most = []int{contract.LaneDelete: contract.MaxDeletions, contract.LaneExpire: contract.MaxCarried}
	for n := range contract.MaxCarried {
		s.request(turnRef(fmt.Sprintf("carried-%d", n)), expire, 0)
	}
	return s, contract.FDBExpiriesFound{
		Entries: found, Beyond: []contract.Beyond{{}, {Count: 5000, Namespaces: []string{"team"}}},
	}
}

// The list is long, and the queue is cut to its half.
func TestABackupNamedByAnOperatorIsNotCut(t *testing.T) {
	s, found := crowded(contract.FDBQueueEntry{Ref: turnRef("other"), Job: expire}, contract.FDBQueueEntry{Ref: turnRef("x"), Job: expire, Last: 990})
	first := &wish{name: contract.FDBQueueName{Namespace: "team", Name: "x"}, first: true}
	nobody := &wish{name: contract.FDBQueueName{Namespace: "team", Name: "nobody"}, first: true}
	s.refill(found, []*wish{first, nobody}, 1000)
	assert.Len(t, s.Members, contract.MaxFound+1)
	assert.True(t, first.met)
	assert.False(t, nobody.met)
	turn, _ := s.Begin(1000)
	assert.Equal(t, "x", turn.Key.Name)
}

// It asks during the listing, and others come before it.
func TestABackupNamedByAnOperatorMayAskMeanwhile(t *testing.T) {
	for _, first := range []bool{true, false} {
		s, found := crowded()
		s.refill(found, nil, 1000)
		s.Listing()
		s.request(turnRef("x"), expire, 1001)
		want := &wish{name: contract.FDBQueueName{Namespace: "team", Name: "x"}, first: first}
		s.refill(found, []*wish{want}, 1002)
		assert.True(t, want.met)
		assert.Equal(t, first, s.Member(turnRef("x")) != nil)
	}
}

func TestARemovedBackupIsOutUntilItAsks(t *testing.T) {
	s, found := crowded(contract.FDBQueueEntry{Ref: turnRef("x"), Job: expire})
	out := &wish{name: contract.FDBQueueName{Namespace: "team", Name: "x"}}
	s.refill(found, []*wish{out}, 1000)
	assert.True(t, out.met)
	s.refill(found, nil, 1100)
	assert.Nil(t, s.Member(turnRef("x")))
	for _, entry := range turns.Each(s.Members, fdbEntryOf) {
		s.request(entry.Ref, contract.FDBJobNone, 1150)
	}
	s.request(turnRef("x"), expire, 1200) // its object's workflow asks
	s.refill(found, nil, 1300)
	assert.NotNil(t, s.Member(turnRef("x")))
}

// A deletion's place does not depend on expirations.
func TestADeletionIsAdmittedWhileExpirationsAreBeyond(t *testing.T) {
	s, found := crowded()
	s.refill(found, nil, 1000)
	s.request(turnRef("x"), remove, 1000)
	s.request(turnRef("carried-7"), remove, 1000)
	s.request(turnRef("y"), expire, 1000)
	assert.Nil(t, s.Member(turnRef("y")), "others come before it")
	for _, name := range []string{"carried-7", "x"} { // an entry keeps its place
		turn, _ := s.Begin(1000)
		s.End(turn.Key)
		assert.Equal(t, turnRef(name), turn.Key)
	}
}
