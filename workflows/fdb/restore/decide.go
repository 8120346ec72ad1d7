package restore

import (
	"slices"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// States of a restore in payloads, in FoundationDB's spelling. Between pending and the end they are its own. People and
// status.state see them as restoretool.Observed spells them.
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
	// Seen is the zero value if the destination was not asked.
	Seen contract.FDBRestoreInspection
	// Resolved: Seen says what would be restored, and what keeps it from being started.
	Resolved bool
	// Memory is what the workflow remembers.
	Memory contract.FDBRestoreMemory
	// Busy says who keeps the container from being read; empty if nobody does, as far as is known.
	Busy string
	// Opposed are those that want the agents paused.
	Opposed []string
	// Tasks are those of the finalization, as far as this run has come with them.
	Tasks []contract.RecordedTask
	Now   time.Time
}

// Step is what is to be done next.
type Step string

// The steps.
const (
	// StepNone: nothing is to be done, or nothing can be.
	StepNone Step = ""
	// StepResolve: it is to be found out what would be restored, and whether the destination is fit for it.
	StepResolve Step = "resolve"
	// StepRead: the guard of the container is to be told that it is read.
	StepRead Step = "read"
	// StepPlan: what is restored is to be written down.
	StepPlan Step = "plan"
	// StepCommand: a command is to be run.
	StepCommand Step = "command"
	// StepFinalize: the tasks after the end are to be run.
	StepFinalize Step = "finalize"
)

// Decision is what is to be done next for a FoundationDBRestore.
type Decision struct {
	Step Step
	// Command is set with StepCommand.
	Command contract.FDBCommand
}

// readAgain is how often the guard is told that the restore still reads: well before it would forget.
const readAgain = time.Hour

// Stopping reports whether the restore shall not run.
func Stopping(v contract.FDBRestoreView) bool { return v.BeingDeleted || v.Stop }

// Ended reports whether a state is one in which nothing happens any more.
func Ended(state string) bool {
	return state == StateCompleted || state == StateAborted || state == StateFailed
}

// Settled reports whether nothing is to be done or watched for the object until its next event.
func Settled(v contract.FDBRestoreView) bool {
	switch {
	case !v.Found:
		return true
	case v.BeingDeleted:
		return !v.Held
	}
	return v.Observed && Ended(v.State)
}

// InspectDue reports whether the destination is to be asked. The one that a plan was made for is; of another the answer would be
// taken for that of the first.
func InspectDue(v contract.FDBRestoreView) bool {
	switch {
	case v.Owner == "" || changed(v) || v.State == StateFinalizing || v.State == StateCompleted || v.State == StateFailed:
		return false
	}
	return v.Plan != nil || !Stopping(v)
}

// changed: the destination is another database than the one that the restore was planned for.
func changed(v contract.FDBRestoreView) bool {
	return v.Plan != nil && v.Owner != "" && v.Owner != v.Plan.Destination
}

// answered: the destination was asked and has answered.
func (s Situation) answered() bool {
	return s.Seen.Failure == nil && InspectDue(s.View)
}

// restore is what the destination says of it; nil if it knows nothing, or does not say.
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

// begun: the status says that it was started, and so it was.
func begun(state string) bool { return state != "" && state != StatePending && !Ended(state) }

// reads reports whether the restore reads its container, as far as is known: also while the destination it was started in does
// not answer, where it may go on.
func (s Situation) reads() bool {
	return s.Runs() || (begun(s.View.State) && !s.answered() && !changed(s.View))
}

// Started reports whether the restore was ever started, as far as is known. Then it never is again.
func (s Situation) Started() bool { return s.restore() != nil || begun(s.View.State) }

// neverStarted: and it cannot have been without anybody knowing.
func (s Situation) neverStarted() bool {
	if begun(s.View.State) {
		return false
	}
	return s.View.Plan == nil || (s.answered() && s.Seen.Restore == nil && !s.inDoubt())
}

// inDoubt: a start may still take effect of which the destination knows nothing yet.
func (s Situation) inDoubt() bool { return s.Now.Unix() < s.Memory.DoubtUntil }

// Finalized reports whether the tasks after the end have all ended.
func (s Situation) Finalized() bool {
	return s.View.Finalized || (len(s.Tasks) > 0 && !slices.ContainsFunc(s.Tasks, func(t contract.RecordedTask) bool {
		return t.Phase != TaskCompleted && t.Phase != TaskFailed
	}))
}

// State is what status.state shows.
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

// stateAfter is the state once FoundationDB has done its part.
func (s Situation) stateAfter() string {
	switch {
	case !s.Finalized():
		return StateFinalizing
	case slices.ContainsFunc(s.Tasks, func(t contract.RecordedTask) bool { return t.Phase == TaskFailed }):
		return StateFailed
	}
	return StateCompleted
}

// Decide returns the next step. A restore is started once; before that, whatever is wrong is found out, its version is made
// explicit, and both are written down.
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
	case !InspectDue(s.View) || Hindrance(s) != nil:
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

// stop aborts the restore if it runs. One that has completed stays as it is; unless it is deleted, its end is checked.
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

// Container is the one that is read, or will be; empty if nobody guards it.
func (s Situation) Container() string {
	if s.View.Plan != nil {
		return s.View.Plan.Container
	}
	return s.View.Container
}

func (s Situation) readDue(container string) bool {
	told := s.Memory.Reading == container && s.Now.Sub(time.Unix(s.Memory.ReadingSince, 0)) < readAgain
	return container != "" && s.Busy == "" && !told
}

// NewPlan is what is going to be restored; nil if what was resolved is not what is to be restored any more.
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

// JoinDue reports whether the owner of the destination is to know of the restore, which never wants a pause: while it runs, and
// while others have the agents paused, so that they learn whom they hold up.
func JoinDue(s Situation) bool {
	return !Stopping(s.View) && s.answered() && (s.Runs() || (s.Seen.AgentsPaused && !s.Started() && s.View.Problem == nil))
}
