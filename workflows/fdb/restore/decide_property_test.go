package restore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/requests"
	fdbrestore "holdfast.dev/holdfast/workflows/fdb/restore"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

var errKilled = errors.New("killed")

// model is a destination and an object on which the workflow's passes run. Between any two steps everything else may happen that can
// happen, until the world is calm.
type model struct {
	*rapid.T
	calm   bool
	now    time.Time
	view   contract.FDBRestoreView
	memory contract.FDBRestoreMemory

	// state is the restore's in the destination, empty if it was never started; lock is who holds the database.
	state, lock   string
	data, paused  bool
	silent        bool
	latest        int64
	starts, plans int
	released      bool
	// end is how the user ends it, after that many steps.
	end          string
	endAt, steps int
}

// inspect returns what the destination reports.
func (m *model) inspect(resolve bool) contract.FDBRestoreInspection {
	if !fdbrestore.InspectDue(m.view) {
		return contract.FDBRestoreInspection{}
	}
	if m.silent {
		return contract.FDBRestoreInspection{Failure: &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "no answer"}}
	}
	seen := contract.FDBRestoreInspection{LockKnown: true, LockUID: m.lock, AgentsPaused: m.paused, Agents: 1}
	if m.state != "" && m.view.Plan != nil {
		seen.Restore = &contract.FDBRestoreProgress{Tag: m.view.Plan.Tag, UID: "ours", State: m.state}
	}
	if resolve {
		seen.Point = &contract.FDBPoint{Version: m.latest}
		if m.data {
			seen.NotEmpty = "all"
		}
	}
	return seen
}

// between is called between any two steps of a pass.
func (m *model) between() error {
	m.now = m.now.Add(time.Second)
	if m.calm {
		return nil
	}
	m.steps++
	if m.steps == m.endAt {
		m.finish(m.end)
	}
	switch rapid.SampledFrom([]string{"nothing", "nothing", "killed", "nothing", "turn", "nothing", "nothing"}).Draw(m.T, "meanwhile") {
	case "turn":
		m.turn()
	case "killed": // and Temporal's database is lost with it
		m.memory = contract.FDBRestoreMemory{}
		return errKilled
	}
	return nil
}

// turn does something that the workflow does not do.
func (m *model) turn() {
	switch rapid.SampledFrom([]string{
		"silence", "lock", "pause", "data", "abort", "time", "commit", "progress", "progress", "progress",
	}).Draw(m.T, "turn") {
	case "progress":
		m.progress()
	case "lock":
		switch m.lock {
		case "":
			m.lock = "another"
		case "another":
			m.lock = ""
		}
	case "data":
		if m.lock == "" {
			m.data = !m.data
		}
	case "pause":
		m.paused = !m.paused
	case "silence":
		m.silent = !m.silent
	case "commit":
		m.latest++
	case "time":
		m.now = m.now.Add(time.Duration(rapid.IntRange(1, 9000).Draw(m.T, "seconds")) * time.Second)
	case "abort": // by hand
		if m.lock == "ours" {
			m.state, m.lock = fdbrestore.StateAborted, ""
		}
	}
}

// finish lets the user end it.
func (m *model) finish(how string) {
	switch {
	case !m.view.Found:
	case how == "stop":
		m.view.Stop, m.view.Observed, m.view.Generation = true, false, m.view.Generation+1
	case how == "delete":
		m.view.BeingDeleted = true
	}
}

func (m *model) progress() {
	if m.paused || m.lock != "ours" {
		return
	}
	switch m.state {
	case fdbrestore.StateQueued:
		m.state, m.data = fdbrestore.StateRunning, true
	case fdbrestore.StateRunning:
		m.state, m.lock = fdbrestore.StateCompleted, ""
	}
}

// run does what the activity does: it reads the state first, and does nothing that is no longer due.
func (m *model) run(command contract.FDBCommand) {
	switch command.Operation {
	case contract.FDBRestoreStart:
		due := !m.view.Stop && !m.view.BeingDeleted && m.view.Generation == command.Generation && m.state == ""
		if m.silent || !due || m.lock != "" || m.data || m.paused {
			return
		}
		m.starts++
		m.state, m.lock = fdbrestore.StateQueued, "ours"
	case contract.FDBRestoreAbort:
		require.Equal(m, m.view.Plan.Tag, command.Tag, "only its own is aborted")
		if !m.silent && m.lock == "ours" {
			m.state, m.lock = fdbrestore.StateAborted, ""
		}
	}
}

// pass is that of the workflow: observe, inspect, operate, publish or release.
func (m *model) pass() error {
	if fdbrestore.Settled(m.view) {
		return nil
	}
	s := fdbrestore.Situation{View: m.view, Now: m.now, Memory: m.memory, Seen: m.inspect(false)}
	m.memory = fdbrestore.Notice(s)
	s.Memory = m.memory
	for range 8 {
		if err := m.between(); err != nil {
			return err
		}
		s.Now = m.now
		decision := fdbrestore.Decide(s)
		if decision.Step == fdbrestore.StepNone {
			break
		}
		if err := m.do(&s, decision); err != nil {
			return err
		}
		if decision.Step == fdbrestore.StepCommand {
			break
		}
	}
	if err := m.between(); err != nil {
		return err
	}
	return m.conclude(s)
}

func (m *model) do(s *fdbrestore.Situation, decision fdbrestore.Decision) error {
	switch decision.Step {
	case fdbrestore.StepResolve:
		s.Seen = m.inspect(true)
		s.Resolved = s.Seen.Failure == nil
	case fdbrestore.StepRead:
		m.memory.Reading, m.memory.ReadingSince = s.Container(), m.now.Unix()
		s.Memory, s.Resolved = m.memory, false
	case fdbrestore.StepPlan:
		plan := fdbrestore.NewPlan(*s)
		require.NotNil(m, plan)
		if m.view.Plan == nil {
			m.plans++
			m.view.Plan = plan
		}
		s.View = m.view
	case fdbrestore.StepCommand:
		if decision.Command.Operation == contract.FDBRestoreStart {
			require.Nil(m, s.Seen.Restore, "no start of what was started")
			require.Empty(m, s.Seen.LockUID, "no start while it is locked")
			require.Empty(m, s.Seen.NotEmpty, "no start into data")
			require.False(m, s.Seen.AgentsPaused, "no start while the agents are paused")
			require.NotNil(m, s.View.Plan, "no start of what was not written down")
		}
		m.run(decision.Command)
		if err := m.between(); err != nil {
			return err
		}
		s.Seen, s.Resolved = m.inspect(false), false
	case fdbrestore.StepFinalize:
		m.view.State = fdbrestore.StateFinalizing
		if err := m.between(); err != nil {
			return err
		}
		ended(fdbrestore.TaskCompleted)(s)
	}
	return nil
}

func (m *model) conclude(s fdbrestore.Situation) error {
	if m.view.BeingDeleted != s.View.BeingDeleted { // noticed at the next inspection
		return nil
	}
	if m.view.BeingDeleted {
		s.Memory.UnreachableSince = requests.UnreachableSince(s.Memory.UnreachableSince, s.View.Owner, s.Seen.Failure, s.Now)
		m.memory = s.Memory
		if due, _ := fdbrestore.ReleaseDue(s, nil, 10*time.Minute); due {
			require.False(m, m.lock == "ours" && !m.silent && s.Seen.Failure == nil && s.Seen.Restore != nil &&
				!fdbrestore.Ended(s.Seen.Restore.State), "let go while it runs")
			m.view, m.released = contract.FDBRestoreView{}, true
		}
		return nil
	}
	findings := fdbrestore.Find(s, contract.ObjectRef{}, nil)
	if fdbrestore.Ended(m.view.State) {
		require.Equal(m, m.view.State, findings.State, "the end is the end")
	}
	m.view.State, m.view.Finalized = findings.State, findings.Finalized
	m.view.Observed = findings.Generation == m.view.Generation
	return nil
}

// judge checks that all is as the spec says, once the world is calm.
func (m *model) judge() {
	require.LessOrEqual(m, m.starts, 1, "started more than once")
	require.LessOrEqual(m, m.plans, 1)
	switch {
	case m.released:
		return
	case m.state == "":
		require.True(m, m.view.Stop && m.view.State == fdbrestore.StateAborted, "not started: %+v", m.view)
	default:
		require.Equal(m, m.state, m.view.State, "%+v", m.view)
		require.NotEqual(m, "ours", m.lock, "%+v", m.view)
		require.Positive(m, m.view.Plan.Version)
	}
}

func TestARestoreIsStartedOnceAndNothingIsLost(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := &model{T: t, now: noon, latest: 700, view: with().View}
		m.view.State, m.view.Observed = "", false
		m.end = rapid.SampledFrom([]string{"stop", "delete", "never"}).Draw(t, "end")
		m.endAt = rapid.IntRange(1, 60).Draw(t, "when")
		for range rapid.IntRange(4, 25).Draw(t, "passes") {
			_ = m.pass() // killed, or not
			if rapid.Bool().Draw(t, "turns") {
				m.turn()
			}
		}
		m.calm, m.silent, m.paused = true, false, false
		if m.lock == "another" {
			m.lock = ""
		}
		m.data = m.data && m.state != ""
		for range 12 {
			require.NoError(t, m.pass())
			if !fdbrestore.Stopping(m.view) { // what is to end does not end by itself
				m.progress()
			}
			m.now = m.now.Add(20 * time.Minute)
		}
		m.judge()
	})
}
