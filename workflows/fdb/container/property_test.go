package container_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// guardModel is what the users of a container know of it, and what must be true of every answer.
type guardModel struct {
	holder  string // the workflow ID; empty if nobody holds it
	deletes bool
	users   map[string]bool
	reads   map[string]time.Duration
	wrong   []string
}

// reading returns a user that reads at that time; empty if none does.
func (m *guardModel) reading(at time.Duration) string {
	for who, until := range m.reads {
		if until > at {
			return who
		}
	}
	return ""
}

func (m *guardModel) other(than string) bool {
	for user := range m.users {
		if user != than {
			return true
		}
	}
	return false
}

// judge is called with every answer.
func (m *guardModel) judge(at time.Duration, request contract.FDBContainerRequest, answer contract.FDBContainerAnswer) {
	fail := func(format string, args ...any) {
		m.wrong = append(m.wrong, fmt.Sprintf("at %s, %s %s: %s", at, request.User.WorkflowID, request.Action, fmt.Sprintf(format, args...)))
	}
	id := request.User.WorkflowID
	switch request.Action {
	case use:
		if request.User.ReadsUntil != 0 {
			m.reads[id] = time.Unix(request.User.ReadsUntil, 0).Sub(guardStart)
		} else {
			m.users[id] = true
		}
		if held := m.holder != ""; held != (answer.Busy != "") {
			fail("held is %t, and the answer was %q", held, answer.Busy)
		}
	case leave:
		delete(m.users, id)
		delete(m.reads, id)
	case release:
		if m.holder == id {
			m.holder = ""
		}
	case expire, erase:
		again, reader := m.holder == id, m.reading(at)
		switch {
		case answer.Held && m.holder != "" && !again:
			fail("granted while %s holds it", m.holder)
		case answer.Held && !again && reader != "":
			fail("granted while %s reads", reader)
		case answer.Held && request.Action == erase && m.other(request.Of) && (!again || !m.deletes):
			fail("granted while others use it")
		case !answer.Held && request.Action == expire && (m.holder == "" || again) && reader == "":
			fail("refused for no reason: %+v", answer)
		case !answer.Held && answer.Busy == "" && len(answer.Others) == 0:
			fail("refused without a word")
		case len(answer.Others) > 0 && !m.other(request.Of):
			fail("refused because of %v, who are not there", answer.Others)
		}
		if request.Whole && len(answer.Others) > 0 {
			delete(m.users, request.Of) // the others have it now
		}
		if answer.Held {
			m.deletes = request.Action == erase || (again && m.deletes)
			m.holder = id
		}
	}
}

// TestAContainerIsNeverHeldByTwoNorDeletedWhileOthersNeedIt: no matter what is requested, over any number of runs, a user that may expire
// or delete is alone, no reader is there that does not know of it, no data are deleted that others use, and none is refused for no reason.
func TestAContainerIsNeverHeldByTwoNorDeletedWhileOthersNeedIt(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := &guardModel{users: map[string]bool{}, reads: map[string]time.Duration{}}
		w := newGuardWorld()
		w.heard = m.judge
		var steps []guardStep
		var at time.Duration
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			// No two events at the same moment, nor at that of a timer, so that none comes when a run completes.
			at += time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds later"))*time.Second + workflowtest.Apart
			who := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who")
			switch what := rapid.SampledFrom([]string{
				"use", "read", "leave", "expire", "expire", "delete", "delete", "delete whole", "release", "release", "continue",
			}).Draw(t, "what"); what {
			case "continue":
				steps = append(steps, guardRolls(at))
			case "read":
				lasting := time.Duration(rapid.IntRange(1, 900).Draw(t, "reads")) * time.Second
				steps = append(steps, reads(at, "restore-"+who, lasting))
			case "delete whole":
				steps = append(steps, wholly(at, who))
			case "leave":
				steps = append(steps, asked(at, rapid.SampledFrom([]string{who, "restore-" + who}).Draw(t, "leaves"), leave))
			default:
				steps = append(steps, asked(at, who, contract.FDBContainerAction(what)))
			}
		}
		if err := w.play(steps); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range m.wrong {
			t.Error(wrong)
		}
	})
}
