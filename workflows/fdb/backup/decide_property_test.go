package backup_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
	"holdfast.dev/holdfast/workflows/fdb/requests"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

const (
	modelStall = 30 * time.Minute
	modelUnmet = 10 * time.Minute
)

// pass is that of the workflow: observe, inspect, operate, publish or release.
func (m *model) pass() error {
	m.failed = nil
	if fdbbackup.Settled(m.view()) {
		m.endRun()
		return nil
	}
	s := fdbbackup.Situation{View: m.view()}
	inspect := func() error {
		if err := m.between(); err != nil {
			return err
		}
		s.Seen, s.Memory = m.inspect(), m.memory
		m.memory = fdbbackup.Notice(s, m.now, modelStall)
		s.Memory = m.memory
		return m.between()
	}
	if err := inspect(); err != nil {
		return err
	}
	for range 8 {
		m.report(&s)
		goOn, err := m.operate(&s, inspect)
		if err != nil {
			return err
		}
		if !goOn {
			break
		}
	}
	return m.conclude(s)
}

// endRun ends the workflow; the next event starts it again.
func (m *model) endRun() {
	if m.memory.Slot != contract.FDBSlotNone {
		m.holds = false
	}
	m.memory = contract.FDBMemory{}
}

// report brings the owner and the throttle up to date.
func (m *model) report(s *fdbbackup.Situation) {
	m.memory.Opposed = nil
	wanted := s.View.Desired.State
	if (m.others == "Running" && wanted == "Paused") || (m.others == "Paused" && wanted == "Running") {
		m.memory.Opposed = []string{"another"}
	}
	s.Memory = m.memory
	switch fdbbackup.SlotAction(*s) {
	case contract.FDBSlotAcquire:
		m.memory.Slot = contract.FDBSlotRequested
		if m.either("slot", "granted", "not yet") == "granted" {
			m.holds, m.memory.Slot = true, contract.FDBSlotGranted
		}
	case contract.FDBSlotCount:
		m.holds, m.memory.Slot = true, contract.FDBSlotGranted
	case contract.FDBSlotRelease:
		m.holds, m.memory.Slot = false, contract.FDBSlotNone
	}
	s.Memory = m.memory
}

func (m *model) operate(s *fdbbackup.Situation, inspect func() error) (goOn bool, err error) {
	decision := fdbbackup.Decide(*s)
	switch decision.Step {
	case fdbbackup.StepPlan:
		if err := m.between(); err != nil {
			return false, err
		}
		if trouble := fdbbackup.Occupied(*s, m.now); trouble != nil {
			m.failed = &fdbbackup.Attempt{Operation: contract.FDBStart, Failure: trouble}
			return false, nil
		}
		if m.object.Generation == s.View.Generation && !fdbbackup.Planned(m.view()) {
			if err := gather.ApplyPlan(m.object, m.objects().Desired(), m.now); err != nil {
				return false, err
			}
		}
		s.View = m.view()
		return fdbbackup.Planned(s.View), m.between()
	case fdbbackup.StepCommand:
		if err := m.between(); err != nil {
			return false, err
		}
		outcome := m.command(decision.Command)
		if err := m.between(); err != nil {
			return false, err
		}
		if outcome.Failure != nil {
			m.failed = &fdbbackup.Attempt{Operation: decision.Command.Operation, Failure: outcome.Failure}
		}
		if !outcome.Done {
			return false, nil
		}
		switch decision.Command.Operation {
		case contract.FDBPause:
			m.memory.Paused = true
		case contract.FDBResume:
			m.memory.Paused = false
		}
		return true, inspect()
	}
	return false, nil
}

func (m *model) conclude(s fdbbackup.Situation) error {
	s.Memory = m.memory
	if s.View.BeingDeleted {
		due, abandoned := fdbbackup.ReleaseDue(s, m.failed, m.now, modelUnmet)
		m.memory.UnreachableSince = requests.UnreachableSince(s.Memory.UnreachableSince, s.View.Owner, s.Seen.Failure, m.now)
		if due {
			require.Empty(m, abandoned, "the database answers")
			m.object.Finalizers = nil
			m.endRun()
		}
		return nil
	}
	before := m.object.Status.DeepCopy()
	findings := contract.FDBFindings{
		Generation: s.View.Generation, Conditions: fdbbackup.Judge(s, m.failed), Backups: fdbbackup.Merge(s),
	}
	gather.ApplyFindings(m.object, findings, m.now)
	for _, entry := range before.Backups {
		kept := slices.ContainsFunc(m.object.Status.Backups, func(e fdbv1alpha1.BackupDetails) bool { return fdbbackup.SamePlace(e.URL, entry.URL) })
		require.True(m, kept || !m.data[placeOf(entry.URL)] || fdbbackup.IsPlan(contract.FDBBackup{State: entry.State}),
			"the entry of %s was lost, and it has data", entry.URL)
	}
	s.View.Backups = findings.Backups
	require.Equal(m, findings.Backups, fdbbackup.Merge(s), "a second inspection changes the list")
	return m.between()
}

// command does what the activity that runs a command does: it reads the state first, and may end with an unknown outcome.
func (m *model) command(command contract.FDBCommand) contract.FDBOutcome {
	if command.Operation != contract.FDBAbort && command.Generation != m.object.Generation {
		return contract.FDBOutcome{Stale: true}
	}
	end := m.either("end", "well", "well", "unknown, done", "unknown, not done", "not begun")
	unknown := contract.FDBOutcome{Failure: &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "killed"}}
	switch end {
	case "not begun":
		return contract.FDBOutcome{}
	case "unknown, not done":
		return unknown
	}
	outcome := m.effect(command)
	if end == "unknown, done" {
		return unknown
	}
	return outcome
}

func (m *model) effect(command contract.FDBCommand) contract.FDBOutcome {
	done, stale := contract.FDBOutcome{Done: true}, contract.FDBOutcome{Stale: true}
	switch command.Operation {
	case contract.FDBPause, contract.FDBResume:
		m.paused = command.Operation == contract.FDBPause
		return done
	}
	tag := m.tag(command.Tag)
	here := tag.Running && fdbbackup.SamePlace(tag.URL, command.URL)
	switch command.Operation {
	case contract.FDBStart:
		if tag.Running {
			return contract.FDBOutcome{Done: here, Stale: !here}
		}
		require.True(m, m.holds, "a start without a slot")
		m.tried++
		if m.data[placeOf(command.URL)] {
			return contract.FDBOutcome{Stale: true, Failure: &contract.FDBFailure{Class: contract.FDBClassUsed, Message: "used"}}
		}
		for _, other := range m.tags {
			require.False(m, other.Running && !other.foreign && m.wrote(other), "%s is started beside %s", command.URL, other.URL)
		}
		m.starts[placeOf(command.URL)]++
		m.begin(tag, command.URL, m.objects().Desired().KeyRanges, false)
	case contract.FDBModify:
		if !here || tag.State == fdb.StateSubmitted {
			return stale
		}
		require.False(m, tag.foreign, "another's backup is modified")
		tag.URL, tag.SnapshotPeriodSeconds = command.URL, m.object.Spec.SnapshotPeriodSeconds
	case contract.FDBAbort:
		if tag.Running && !here {
			return stale
		}
		require.False(m, tag.Running && tag.foreign, "another's backup is aborted")
		m.end(tag)
	}
	return done
}

// wrote reports whether we started it, not a twin.
func (m *model) wrote(tag *modelTag) bool { return m.starts[placeOf(tag.URL)] > 0 }

// calmDown disturbs nothing until nothing changes any more.
func (m *model) calmDown() {
	m.calm = true
	m.memory.Quiet = 0
	for range 30 {
		m.now = m.now.Add(25 * time.Hour)
		m.progress()
		if m.memory.Slot == contract.FDBSlotRequested { // it asks again at a timer
			m.memory.Slot = contract.FDBSlotUnknown
		}
		require.NoError(m, m.pass())
	}
}

// TestABackupIsBroughtToWhatTheSpecSays: the spec changes, commands end in every way, workers and databases are lost, and others use the
// same database. No backup of others is touched, none is started twice or without a slot, and without further changes all becomes as
// the spec says.
func TestABackupIsBroughtToWhatTheSpecSays(t *testing.T) {
	formats := map[string]string{
		"by the second": fdb.DefaultTimestampFormat, "by the day, so that two starts can want the same place": "-2006-01-02",
	}
	for title, format := range formats {
		t.Run(title, func(t *testing.T) {
			property.Check(t, func(t *rapid.T) {
				m := newModel(t, format)
				for range rapid.IntRange(1, 20).Draw(t, "passes") {
					m.now = m.now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "pause")) * time.Second)
					_ = m.pass() // killed, or not
					m.turn()
				}
				m.calmDown()
				m.judge()
			})
		})
	}
}

// judge checks that all is as the spec says.
func (m *model) judge() {
	for place, times := range m.starts {
		require.LessOrEqual(m, times, 1, "%s was started more than once", place)
	}
	// One for each start that was tried, by us or a twin, and a plan.
	require.LessOrEqual(m, len(m.object.Status.Backups), m.uids+m.tried+1, "%+v", m.object.Status.Backups)
	status := fmt.Sprintf("%+v", m.object.Status)
	desired := m.objects()
	if desired.Object == nil {
		m.judgeStopped("deleted")
		return
	}
	require.True(m, m.object.DeletionTimestamp.IsZero(), "not released: %s", status)
	want := desired.Desired()
	tag := m.tag(want.Tag)
	if want.State == "Stopped" {
		require.True(m, m.object.Status.Reconciled, status)
		m.judgeStopped("stopped")
		return
	}
	require.True(m, tag.Running, "nothing runs: %s", status)
	running, err := fdb.ParseURL(tag.URL)
	require.NoError(m, err)
	base, err := fdb.ParseURL(want.URL)
	require.NoError(m, err)
	here := running.StartedFrom(base, want.TimestampFormat)
	if !here && (tag.foreign || !m.wrote(tag)) { // also a twin's that was never seen while the spec asked for its place
		require.Equal(m, fdbv1alpha1.ReasonTagTaken, m.object.Status.Conditions[0].Reason, status)
		return
	}
	require.True(m, here, "%s runs, and the spec asks for %s: %s", tag.URL, want.URL, status)
	for name, other := range m.tags {
		require.False(m, name != want.Tag && other.Running && !other.foreign && m.listed(other), "%s runs beside it", other.URL)
	}
	opposed := len(m.memory.Opposed) > 0
	if tag.State == fdb.StateSubmitted { // for ever, as the agents are paused
		require.True(m, m.paused && want.State == "Paused", status)
		return
	}
	require.Equal(m, want.SnapshotPeriodSeconds, tag.SnapshotPeriodSeconds, status)
	assert.Equal(m, base.Parameters, running.Parameters, status)
	if m.wrote(tag) {
		require.Equal(m, want.KeyRanges, tag.ranges, "ranges: %s", status)
	}
	if want.State != "Paused" || !opposed { // otherwise the others, who want them to run, resume them
		require.Equal(m, want.State == "Paused", m.paused, status)
	}
	require.Equal(m, !opposed, m.object.Status.Reconciled, status)
	require.False(m, m.holds && tag.Restorable, "the slot is kept")
	require.True(m, m.listed(tag), status)
}

func (m *model) judgeStopped(why string) {
	for _, tag := range m.tags {
		require.False(m, tag.Running && !tag.foreign && m.wrote(tag), "%s runs though %s: %+v", tag.URL, why, m.object.Status)
	}
	require.False(m, m.holds, "the slot is kept though %s", why)
}

func (m *model) listed(tag *modelTag) bool {
	return slices.ContainsFunc(m.object.Status.Backups, func(e fdbv1alpha1.BackupDetails) bool {
		return e.Tag == tag.Tag && fdbbackup.SamePlace(e.URL, tag.URL)
	})
}
