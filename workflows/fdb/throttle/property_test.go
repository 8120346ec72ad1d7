package throttle_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// throttleModel is what the backups know of their slots, and what must be true of every grant. Times are relative to the start.
type throttleModel struct {
	*throttleWorld
	// asked is when a backup asked first for the place that it may have in the queue, again when it asked after it last came back.
	asked, again map[string]time.Duration
	// turns are when each namespace was granted a slot, and vain when a grant found that its backup's workflow does not run: that is
	// the namespace's turn, too.
	turns, vain map[string][]time.Duration
	// holds are those that may start a first snapshot, or are in one; died is when they went.
	holds map[string]bool
	died  map[string]time.Duration
	// late came back when its slot could have been revoked, or not yet.
	late  map[string]bool
	wrong []string
}

func newThrottleModel() *throttleModel {
	m := &throttleModel{
		throttleWorld: newThrottleWorld(), asked: map[string]time.Duration{}, again: map[string]time.Duration{},
		turns: map[string][]time.Duration{}, vain: map[string][]time.Duration{}, holds: map[string]bool{}, died: map[string]time.Duration{}, late: map[string]bool{},
	}
	m.granted = m.judge
	m.unheard = func(backup string) {
		of := workflowtest.TeamOf(backup)
		m.vain[of] = append(m.vain[of], m.now())
	}
	return m
}

// harmless reports whether no command that a backup has requested can run any more.
func (m *throttleModel) harmless(backup string, at time.Duration) bool {
	died, dead := m.died[backup]
	return dead && at-died >= contract.FDBSlotGrace
}

// judge is called at every grant that arrives.
func (m *throttleModel) judge(backup string) {
	if m.holds[backup] {
		return // granted again
	}
	if m.late[backup] {
		m.acquire(backup) // granted again, or in its turn: the next one's grant shows
		return
	}
	others := 0
	for other := range m.holds {
		if !m.harmless(other, m.now()) {
			others++
		}
	}
	if others >= m.limit {
		m.wrong = append(m.wrong, fmt.Sprintf("%s got a slot at %s beside %d others, and the limit is %d", backup, m.now(), others, m.limit))
	}
	mine, waits := m.asked[backup]
	if !waits {
		m.wrong = append(m.wrong, fmt.Sprintf("%s got a slot at %s and had not asked", backup, m.now()))
	}
	for _, other := range slices.Sorted(maps.Keys(m.again)) {
		at := m.again[other]
		if !m.dead[other] && workflowtest.TeamOf(other) == workflowtest.TeamOf(backup) && at < mine {
			m.wrong = append(m.wrong, fmt.Sprintf("%s, which asked at %s, got a slot at %s before %s, which had asked at %s",
				backup, mine, m.now(), other, at))
		}
		if turns := m.turnsSince(workflowtest.TeamOf(backup), at, workflowtest.TeamOf(other)); !m.dead[other] && len(turns) > 0 {
			m.wrong = append(m.wrong, fmt.Sprintf("%s got a slot at %s, its namespace had one at %s, and %s waits since %s",
				backup, m.now(), turns, other, at))
		}
	}
	m.turns[workflowtest.TeamOf(backup)] = append(m.turns[workflowtest.TeamOf(backup)], m.now())
	m.acquire(backup)
}

// turnsSince returns the grants to a namespace after a time, and after the last grant to another.
func (m *throttleModel) turnsSince(namespace string, since time.Duration, other string) (turns []time.Duration) {
	if namespace == other {
		return nil
	}
	for _, at := range slices.Concat(m.turns[other], m.vain[other]) {
		since = max(since, at)
	}
	for _, at := range m.turns[namespace] {
		if at > since {
			turns = append(turns, at)
		}
	}
	return turns
}

func (m *throttleModel) acquire(backup string) {
	delete(m.asked, backup)
	delete(m.again, backup)
	delete(m.late, backup)
	m.holds[backup] = true
}

func (m *throttleModel) drop(backup string) {
	delete(m.asked, backup)
	delete(m.again, backup)
	delete(m.holds, backup)
	delete(m.died, backup)
	delete(m.late, backup)
}

// sends is a signal, noted in the model a moment before it is sent.
func (m *throttleModel) sends(at time.Duration, backup string, action contract.FDBSlotAction) []throttleStep {
	return []throttleStep{
		happens(at, func(*throttleWorld) {
			switch {
			case action == contract.FDBSlotRelease:
				m.drop(backup)
			case action == contract.FDBSlotCount:
				m.acquire(backup)
			case !m.holds[backup]:
				if _, waits := m.asked[backup]; !waits {
					m.asked[backup] = at
				}
				if _, waits := m.again[backup]; !waits {
					m.again[backup] = at
				}
			}
		}),
		{at: at + time.Millisecond, action: action, backup: backup},
	}
}

func (m *throttleModel) goes(at time.Duration, backup string) throttleStep {
	return happens(at, func(w *throttleWorld) {
		if !w.dead[backup] {
			w.die(backup)
			m.died[backup] = at
			delete(m.again, backup)
		}
	})
}

// returns starts a backup's workflow again. It asks again, as it does not know what it had.
func (m *throttleModel) returns(at time.Duration, backup string) []throttleStep {
	back := happens(at, func(w *throttleWorld) {
		w.comeBack(backup)
		if m.holds[backup] && m.harmless(backup, at) {
			delete(m.holds, backup)
			m.late[backup] = true
		}
		delete(m.died, backup)
	})
	return append([]throttleStep{back}, m.sends(at+time.Millisecond, backup, contract.FDBSlotAcquire)...)
}

// throttled are backups of three namespaces.
var throttled = []string{"a", "b", "c", "bank-d", "bank-e", "shop-f"}

// random returns a random step for one of a few backups.
func (m *throttleModel) random(t *rapid.T, at time.Duration, dead map[string]bool) []throttleStep {
	backup := rapid.SampledFrom(throttled).Draw(t, "backup")
	what := rapid.SampledFrom([]string{
		"ask", "ask", "ask", "count", "release", "release", "die", "limit", "continue",
	}).Draw(t, "what")
	switch {
	case what == "limit":
		return []throttleStep{setsLimit(at, rapid.IntRange(1, 3).Draw(t, "limit"))}
	case what == "continue":
		return []throttleStep{continuesAsNew(at)}
	case dead[backup]:
		delete(dead, backup)
		return m.returns(at, backup)
	case what == "die":
		dead[backup] = true
		return []throttleStep{m.goes(at, backup)}
	case what == "ask":
		return m.sends(at, backup, contract.FDBSlotAcquire)
	case what == "count":
		return m.sends(at, backup, contract.FDBSlotCount)
	}
	return m.sends(at, backup, contract.FDBSlotRelease)
}

// TestWhateverHappensSlotsAreGivenInOrderAndNoneIsLost: at a grant there are fewer other holders than the limit. No backup is granted a
// slot before one of its namespace that asked earlier and waits, and no namespace a second one while another waits. When the holders
// release their slots, every backup that runs gets one.
func TestWhateverHappensSlotsAreGivenInOrderAndNoneIsLost(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := newThrottleModel()
		var steps []throttleStep
		// No two events have the same milliseconds, so that none coincides with a timer that another has set: what comes at the
		// very moment when a run completes is lost in the test environment, and is not by Temporal.
		var at time.Duration
		dead := map[string]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			at += time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds later"))*time.Second + workflowtest.Apart
			steps = append(steps, m.random(t, at, dead)...)
		}
		// In the end the holders release their slots, one every ten seconds, until no backup waits.
		at += contract.FDBSlotGrace + 3*time.Minute
		for range 20 {
			for _, backup := range throttled {
				at += 10*time.Second + workflowtest.Apart
				steps = append(steps, m.releasesIfHolding(at, backup)...)
			}
		}
		if err := m.play(steps); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range m.wrong {
			t.Error(wrong)
		}
		for _, backup := range slices.Sorted(maps.Keys(m.again)) {
			since := m.again[backup]
			if !m.dead[backup] {
				t.Errorf("%s asked at %s and never got a slot; grants: %q", backup, since, m.grants)
			}
		}
		if !m.ended {
			t.Errorf("no backup needs it, and the throttle runs on; grants: %q", m.grants)
		}
	})
}

// releasesIfHolding sends a release if the backup has a slot.
func (m *throttleModel) releasesIfHolding(at time.Duration, backup string) []throttleStep {
	return []throttleStep{happens(at, func(w *throttleWorld) {
		if m.holds[backup] && !w.dead[backup] {
			m.drop(backup)
			w.send = slices.Insert(w.send, 0, contract.FDBSlotRequest{
				Cluster: "west", WorkflowID: backup, Action: contract.FDBSlotRelease,
			})
		}
	})}
}
