package backup

import (
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// Situation is all that is known when the next step of a FoundationDBBackup is decided.
type Situation struct {
	View contract.FDBBackupView
	Seen contract.FDBInspection
	// Memory is what the workflow knows and cannot read.
	Memory contract.FDBMemory
}

// Step is what is to be done next.
type Step string

// The steps.
const (
	// StepNone: nothing is due, or nothing can be done.
	StepNone Step = ""
	// StepSlot: ask for a slot for a first snapshot.
	StepSlot Step = "slot"
	// StepPlan: write down where the next backup goes.
	StepPlan Step = "plan"
	// StepCommand: run a command.
	StepCommand Step = "command"
)

// Decision is what is to be done next for a FoundationDBBackup.
type Decision struct {
	Step Step
	// Command is set with StepCommand.
	Command contract.FDBCommand
}

// Stopping reports whether the object's backups must end: the spec says Stopped, or the object is being deleted.
func Stopping(v contract.FDBBackupView) bool {
	return v.BeingDeleted || v.Desired.State == "Stopped"
}

// Settled reports whether nothing is left to do or to watch for the object until its next event.
func Settled(v contract.FDBBackupView) bool {
	switch {
	case !v.Found:
		return true
	case v.BeingDeleted:
		return Gone(v)
	}
	return v.Desired.State == "Stopped" && v.Held && v.DeleteWanted == v.DeletionRequested && v.Observed && v.Reconciled
}

// Decide returns the next step, in the order: start or stop, pause or resume, modify. Stopping never waits for a slot.
func Decide(s Situation) Decision {
	if s.View.Owner == "" || s.Seen.Failure != nil {
		return Decision{}
	}
	if Stopping(s.View) {
		return s.stop()
	}
	if s.View.Problem != nil {
		return Decision{}
	}
	current, runs := s.current()
	if runs && !s.ours(current) {
		return Decision{} // the tag is in use
	}
	old, restart := s.outdated()
	if !runs || (restart && old.Tag == current.Tag) {
		return s.start(old, restart)
	}
	if restart { // under another tag, and the new one runs already
		return s.command(contract.FDBAbort, old.Tag, old.URL)
	}
	if step := s.togglePaused(); step.Step != StepNone {
		return step
	}
	if s.Differs(current) {
		return s.command(contract.FDBModify, current.Tag, s.modified(current))
	}
	return Decision{}
}

func (s Situation) command(operation contract.FDBOperation, tag, url string) Decision {
	return Decision{Step: StepCommand, Command: contract.FDBCommand{
		Operation: operation, Generation: s.View.Generation, Tag: tag, URL: url,
	}}
}

// stop aborts every running backup of this object, and then resumes the agents if they were paused for it.
func (s Situation) stop() Decision {
	for _, tag := range s.Seen.Tags {
		if tag.Running && s.ours(tag) {
			return s.command(contract.FDBAbort, tag.Tag, tag.URL)
		}
	}
	if s.Memory.Paused && s.Seen.AgentsPaused {
		return s.command(contract.FDBResume, "", "")
	}
	return Decision{}
}

// start asks for a slot, writes down where the backup goes, aborts the backup that it replaces, if any, and starts it.
func (s Situation) start(old contract.FDBTag, restart bool) Decision {
	if s.Used() || s.TooMany() {
		return Decision{}
	}
	if s.Memory.Slot != contract.FDBSlotGranted {
		return Decision{Step: StepSlot}
	}
	plan, planned := s.planned()
	switch {
	case !planned:
		return Decision{Step: StepPlan}
	case restart:
		decision := s.command(contract.FDBAbort, old.Tag, old.URL)
		decision.Command.Next = plan.URL
		return decision
	}
	return s.command(contract.FDBStart, plan.Tag, plan.URL)
}

// Used reports whether every start would write into a container that has been written to. That can happen only without a time in
// the path.
func (s Situation) Used() bool {
	d := s.View.Desired
	place, err := fdb.PlaceAt(d, time.Unix(0, 0))
	return err == nil && timeless(d.TimestampFormat) && s.written(place)
}

// maxBackups bounds status.backups, which is read and written whole.
const maxBackups = 64

// TooMany reports whether no further backup is started because status.backups is full.
func (s Situation) TooMany() bool {
	_, planned := s.planned()
	return !planned && len(s.View.Backups) >= maxBackups
}

// timeless: the format gives the same text for every time.
func timeless(format string) bool {
	odd := time.Date(2031, time.November, 23, 14, 37, 59, 123456789, time.UTC) // no part of it is that of Go's reference time
	return odd.Format(format) == odd.AddDate(1, 1, 1).Add(25*time.Hour+61*time.Second).Format(format)
}

func (s Situation) togglePaused() Decision {
	switch wanted := s.View.Desired.State == "Paused"; {
	case wanted && !s.Seen.AgentsPaused && len(s.Memory.Opposed) == 0:
		return s.command(contract.FDBPause, "", "")
	case !wanted && s.Seen.AgentsPaused:
		return s.command(contract.FDBResume, "", "")
	}
	return Decision{}
}

// planned returns the entry of status.backups for the backup to start: it is of the present spec, has never run, and nothing was
// written there.
func (s Situation) planned() (contract.FDBBackup, bool) {
	for _, entry := range s.View.Backups {
		if IsPlan(entry) && s.planFits(entry) && !s.written(entry.URL) {
			return entry, true
		}
	}
	return contract.FDBBackup{}, false
}

// IsPlan reports whether an entry of status.backups was written down and, as far as is known, not started yet.
func IsPlan(entry contract.FDBBackup) bool { return entry.State == fdb.StateNeverRan }

func (s Situation) planFits(entry contract.FDBBackup) bool {
	d := s.View.Desired
	return entry.Tag == d.Tag && fdb.SameKeys(entry.KeyRanges, d.KeyRanges) && s.here(entry.URL) &&
		parametersOf(entry.URL) == parametersOf(d.URL)
}

// here: the URL is the destination of the spec, with the time of any start.
func (s Situation) here(url string) bool {
	base, err := fdb.ParseURL(s.View.Desired.URL)
	if err != nil {
		return false
	}
	started, err := fdb.ParseURL(url)
	return err == nil && started.StartedFrom(base, s.View.Desired.TimestampFormat)
}

// Differs reports whether a running backup has parameters that modify can change to those of the spec. FoundationDB does not
// report the period of a backup that is only submitted: a modification then would be repeated for ever.
func (s Situation) Differs(current contract.FDBTag) bool {
	if current.State != fdb.StateRunning && current.State != fdb.StateRunningDifferentially {
		return false
	}
	period := current.SnapshotPeriodSeconds
	return (period != 0 && period != s.View.Desired.SnapshotPeriodSeconds) || current.URL != s.modified(current)
}

// modified returns the URL of a running backup with the parameters of the spec.
func (s Situation) modified(current contract.FDBTag) string {
	running, err := fdb.ParseURL(current.URL)
	if err != nil {
		return current.URL
	}
	desired, err := fdb.ParseURL(s.View.Desired.URL)
	if err != nil || slices.Equal(running.Parameters, desired.Parameters) {
		return current.URL
	}
	running.Parameters = desired.Parameters
	return running.URL()
}

// SamePlace reports whether two URLs name the same container. A URL that cannot be parsed equals only itself.
func SamePlace(a, b string) bool {
	first, errFirst := fdb.ParseURL(a)
	second, errSecond := fdb.ParseURL(b)
	if errFirst != nil || errSecond != nil {
		return a == b && a != ""
	}
	return first.SamePlace(second)
}

func parametersOf(url string) string {
	destination, err := fdb.ParseURL(url)
	if err != nil {
		return ""
	}
	return strings.Join(destination.Parameters, "&")
}

// Planned reports whether status.backups has the entry for the backup to start.
func Planned(v contract.FDBBackupView) bool {
	_, planned := Situation{View: v}.planned()
	return planned
}

// AgentsDue reports whether the agents' Deployment must be created or updated, and may be.
func AgentsDue(v contract.FDBBackupView) bool {
	agents := v.Agents
	return v.Found && !v.BeingDeleted && v.Owner != "" && agents.Invalid == "" &&
		(!agents.Exists || (agents.Ours && !agents.Current))
}
