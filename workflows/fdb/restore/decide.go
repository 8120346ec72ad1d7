package restore

import (
	"slices"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// States of a restore in payloads, in FoundationDB's spelling; those between pending and the end are FoundationDB's own.
// status.state shows them as restoretool.Observed spells them.
const (
	StatePending    = "pending"
	StateQueued     = "queued"
	StateStarting   = "starting"
	StateRunning    = "running"
	StateCompleted  = "completed"
	StateAborted    = "aborted"
	StateFinalizing = "finalizing"
	StateFailed     = "failed"
)

// Phases of a task of the finalization.
const (
	TaskInProgress = "InProgress"
	TaskCompleted  = "Completed"
	TaskFailed     = "Failed"
)

// Situation is all that is known when the next step of a FoundationDBRestore is decided.
type Situation struct {
	View contract.FDBRestoreView
	// Seen is what the destination reported; the zero value if it was not read.
	Seen contract.FDBRestoreInspection
	// Resolved: Seen has the version to restore to, and what keeps the restore from being started.
	Resolved bool
	// Memory is what the workflow knows and cannot read.
	Memory contract.FDBRestoreMemory
	// Busy says who keeps the container from being read; empty if, as far as is known, it may be read.
	Busy string
	// Opposed are the members that want the agents paused.
	Opposed []string
	// Tasks are those of the finalization, as far as they have run in this run.
	Tasks []contract.RecordedTask
	Now   time.Time
}

// Step is what is to be done next.
type Step string

// The steps.
const (
	// StepNone: nothing is due, or nothing can be done.
	StepNone Step = ""
	// StepResolve: find out what would be restored, and whether the destination is fit for it.
	StepResolve Step = "resolve"
	// StepRead: report to the guard of the container that the restore reads it.
	StepRead Step = "read"
	// StepPlan: write down what is restored.
	StepPlan Step = "plan"
	// StepCommand: run a command.
	StepCommand Step = "command"
	// StepFinalize: run the tasks after the end.
	StepFinalize Step = "finalize"
)

// Decision is what is to be done next for a FoundationDBRestore.
type Decision struct {
	Step Step
	// Command is set with StepCommand.
	Command contract.FDBCommand
}

// readAgain is how often the restore reports to the guard that it still reads: well before the guard drops it.
const readAgain = time.Hour

// Stopping reports whether the restore must not run.
func Stopping(v contract.FDBRestoreView) bool { return v.BeingDeleted || v.Stop }

// Ended reports whether a state is final.
func Ended(state string) bool {
	return state == StateCompleted || state == StateAborted || state == StateFailed
}

// Settled reports whether nothing is left to do or to watch for the object until its next event.
func Settled(v contract.FDBRestoreView) bool {
	switch {
	case !v.Found:
		return true
	case v.BeingDeleted:
		return !v.Held
	}
	return v.Observed && Ended(v.State)
}

// InspectDue reports whether the destination is to be read. If the plan is for another database, it is not: its answer would
// count as that of the planned one.
func InspectDue(v contract.FDBRestoreView) bool {
	switch {
	case v.Owner == "" || changed(v) || v.State == StateFinalizing || v.State == StateCompleted || v.State == StateFailed:
		return false
	}
	return v.Plan != nil || !Stopping(v)
}

// changed: the destination is not the database for which the restore was planned.
func changed(v contract.FDBRestoreView) bool {
	return v.Plan != nil && v.Owner != "" && v.Owner != v.Plan.Destination
}

// answered: the destination was read and has answered.
func (s Situation) answered() bool {
	return s.Seen.Failure == nil && InspectDue(s.View)
}

// restore returns what the destination reports of the restore; nil if it knows nothing, or does not answer.
func (s Situation) restore() *contract.FDBRestoreProgress {
	if s.View.Plan == nil || !s.answered() {
		return nil
	}
	return s.Seen.Restore
}

// Runs reports whether the restore runs in the destination now.
func (s Situation) Runs() bool {
	restore := s.restore()
	return restore != nil && !Ended(restore.State)
}

// begun: the status says that the restore was started, which is true then.
func begun(state string) bool { return state != "" && state != StatePending && !Ended(state) }

// reads reports whether the restore, as far as is known, reads its container: also while its destination does not answer, where
// it may still run.
func (s Situation) reads() bool {
	return s.Runs() || (begun(s.View.State) && !s.answered() && !changed(s.View))
}

// Started reports whether the restore, as far as is known, was ever started. Then it is never started again.
func (s Situation) Started() bool { return s.restore() != nil || begun(s.View.State) }

// neverStarted: the restore was certainly never started.
func (s Situation) neverStarted() bool {
	if begun(s.View.State) {
		return false
	}
	return s.View.Plan == nil || (s.answered() && s.Seen.Restore == nil && !s.inDoubt())
}

// inDoubt: a start may still take effect that the destination does not know yet.
func (s Situation) inDoubt() bool { return s.Now.Unix() < s.Memory.DoubtUntil }

// Finalized reports whether all tasks after the end have ended.
func (s Situation) Finalized() bool {
	return s.View.Finalized || (len(s.Tasks) > 0 && !slices.ContainsFunc(s.Tasks, func(t contract.RecordedTask) bool {
		return t.Phase != TaskCompleted && t.Phase != TaskFailed
	}))
}

// State returns the restore's state for status.state.
func State(s Situation) string {
	restore := s.restore()
	switch {
	case Ended(s.View.State):
		return s.View.State
	case s.View.State == StateFinalizing || (restore != nil && restore.State == StateCompleted):
		return s.stateAfter()
	case restore != nil:
		return restore.State
	case s.View.Stop && (s.neverStarted() || (s.answered() && !s.inDoubt())): // nothing of it runs
		return StateAborted
	case begun(s.View.State):
		return s.View.State
	}
	return StatePending
}

// stateAfter is the state once FoundationDB has finished the restore.
func (s Situation) stateAfter() string {
	switch {
	case !s.Finalized():
		return StateFinalizing
	case slices.ContainsFunc(s.Tasks, func(t contract.RecordedTask) bool { return t.Phase == TaskFailed }):
		return StateFailed
	}
	return StateCompleted
}

// Decide returns the next step. A restore is started once. Before that, everything that is wrong is found out, the version is
// made explicit, and the plan is written down.
func Decide(s Situation) Decision {
	switch {
	case !s.View.Found || Ended(s.View.State):
		return Decision{}
	case Stopping(s.View):
		return s.stop()
	case State(s) == StateFinalizing:
		return Decision{Step: StepFinalize}
	case s.Started():
		if s.reads() && s.readDue(s.Container()) {
			return Decision{Step: StepRead}
		}
		return Decision{}
	case !InspectDue(s.View) || Blocker(s) != nil:
		return Decision{}
	case !s.Resolved:
		return Decision{Step: StepResolve}
	case s.readDue(s.Container()):
		return Decision{Step: StepRead}
	case s.View.Plan == nil:
		return Decision{Step: StepPlan}
	}
	return s.command(contract.FDBRestoreStart)
}

// stop aborts the restore if it runs. One that has completed stays as it is; its end is checked unless the object is being
// deleted.
func (s Situation) stop() Decision {
	switch {
	case s.Runs():
		return s.command(contract.FDBRestoreAbort)
	case !s.View.BeingDeleted && State(s) == StateFinalizing:
		return Decision{Step: StepFinalize}
	}
	return Decision{}
}

func (s Situation) command(operation contract.FDBOperation) Decision {
	return Decision{Step: StepCommand, Command: contract.FDBCommand{
		Operation: operation, Generation: s.View.Generation, Tag: s.View.Plan.Tag, URL: s.View.Plan.URL,
	}}
}

// Container returns the container that is read, or will be; empty if it has no guard.
func (s Situation) Container() string {
	if s.View.Plan != nil {
		return s.View.Plan.Container
	}
	return s.View.Container
}

func (s Situation) readDue(container string) bool {
	known := s.Memory.Reading == container && s.Now.Sub(time.Unix(s.Memory.ReadingSince, 0)) < readAgain
	return container != "" && s.Busy == "" && !known
}

// NewPlan returns the plan; nil if what was resolved is not what the spec asks for any more.
func NewPlan(s Situation) *contract.FDBRestorePlan {
	point := s.Seen.Point
	if point == nil || s.View.Owner == "" || s.View.URL == "" || (s.Seen.URL != "" && s.Seen.URL != s.View.URL) {
		return nil
	}
	return &contract.FDBRestorePlan{
		Tag: s.View.Tag, URL: s.View.URL, Container: s.View.Container, Version: point.Version, Time: point.Time,
		Destination: s.View.Owner,
	}
}

// JoinDue reports whether the owner of the destination must know of the restore, which never wants a pause: while it runs, and
// while others have the agents paused, so that they learn which restore waits for them.
func JoinDue(s Situation) bool {
	return !Stopping(s.View) && s.answered() && (s.Runs() || (s.Seen.AgentsPaused && !s.Started() && s.View.Problem == nil))
}
