package restore

import (
	"fmt"
	"strings"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// Attempt is a command that failed or was put off.
type Attempt = fdbbackup.Attempt

// Judge returns the condition that holds, if any (docs/foundationdb-restore.md, "Conditions"): there is one until all is
// restored. failed is the command of the last pass that was not done, or nil.
func Judge(s Situation, failed *Attempt) []contract.FDBCondition {
	if found := s.judge(failed); found != nil {
		return []contract.FDBCondition{*found}
	}
	return nil
}

func incorrect(reason, format string, args ...any) *contract.FDBCondition {
	return &contract.FDBCondition{
		Type: fdbv1alpha1.ConditionIncorrectRestoreState, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func misconfigured(reason, format string, args ...any) *contract.FDBCondition {
	return &contract.FDBCondition{
		Type: fdbv1alpha1.ConditionMisconfiguredRestore, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func (s Situation) judge(failed *Attempt) *contract.FDBCondition {
	switch State(s) {
	case StateCompleted:
		return nil
	case StateFailed:
		return incorrect(fdbv1alpha1.ReasonFinalizationFailing, "everything was restored, but a check of the "+
			"result failed: %s", s.taskErrors())
	case StateFinalizing:
		return incorrect(fdbv1alpha1.ReasonRestoring, "everything is restored; its end is being checked")
	case StateAborted:
		return s.judgeAborted()
	}
	if Stopping(s.View) {
		return s.judgeStopping(failed)
	}
	if s.Started() {
		return s.judgeRunning()
	}
	if failed != nil {
		return judgeFailed(failed)
	}
	if blocker := Blocker(s); blocker != nil {
		return blocker
	}
	return incorrect(fdbv1alpha1.ReasonNotStarted, "the restore is about to be started")
}

func (s Situation) taskErrors() string {
	var errors []string
	for _, task := range s.Tasks {
		errors = append(errors, task.Errors...)
	}
	if len(errors) == 0 {
		return "see status.finalization"
	}
	return strings.Join(errors, "; ")
}

// judgeAborted returns the condition for an aborted restore; nil if it was never started, and so has left nothing behind.
func (s Situation) judgeAborted() *contract.FDBCondition {
	if s.neverStarted() {
		return nil
	}
	by, holds := "as restoreState says", "holds"
	if !s.View.Stop {
		by = "by somebody other than Holdfast"
	}
	if s.restore() == nil {
		holds = "may hold"
	}
	return incorrect(fdbv1alpha1.ReasonAborted, "the restore was aborted, %s: the destination %s partial data. Clear them before "+
		"another FoundationDBRestore", by, holds)
}

func (s Situation) judgeStopping(failed *Attempt) *contract.FDBCondition {
	if out := s.judgeReach(); out != nil {
		return out
	}
	if failed != nil {
		return judgeFailed(failed)
	}
	if s.Started() && s.restore() == nil {
		return s.judgeLost()
	}
	return incorrect(fdbv1alpha1.ReasonNotAborted, "the restore is %s and is to be aborted", restoretool.Observed(State(s)))
}

// judgeReach returns the condition for a destination of which nothing is known; nil if it has answered.
func (s Situation) judgeReach() *contract.FDBCondition {
	switch trouble := s.Seen.Failure; {
	case changed(s.View):
		return incorrect(fdbv1alpha1.ReasonDatabaseChanged, "the FoundationDBCluster is now another database (%s) than this "+
			"restore was planned for (%s): nothing more is done. Create another FoundationDBRestore", s.View.Owner,
			s.View.Plan.Destination)
	case s.View.Owner == "" && s.View.Problem != nil:
		return s.View.Problem
	case s.View.Owner == "" && s.View.ClusterGone:
		return misconfigured(fdbv1alpha1.ReasonClusterMissing, "there is no FoundationDBCluster of the destination's name")
	case s.View.Owner == "":
		return misconfigured(fdbv1alpha1.ReasonClusterNotReady, "the destination's FoundationDBCluster does not say how to reach it")
	case trouble == nil:
		return nil
	case trouble.Class == contract.FDBClassToolMissing:
		return misconfigured(fdbv1alpha1.ReasonToolsMissing, "%s", trouble.Message)
	case trouble.Class == contract.FDBClassNoWorker:
		return incorrect(fdbv1alpha1.ReasonNoWorker, "%s", trouble.Message)
	case trouble.Class == contract.FDBClassClusterFile:
		return misconfigured(fdbv1alpha1.ReasonClusterNotReady, "%s", trouble.Message)
	case trouble.Class == contract.FDBClassTimeout:
		return incorrect(fdbv1alpha1.ReasonClusterUnreachable, "%s", trouble.Message)
	default:
		return incorrect(fdbv1alpha1.ReasonStateUnknown, "the state of the destination cannot be read: %s", trouble.Message)
	}
}

// Blocker returns the first known condition that keeps a restore from being started; nil if there is none.
func Blocker(s Situation) *contract.FDBCondition {
	if s.View.Problem != nil {
		return s.View.Problem
	}
	if out := s.judgeReach(); out != nil {
		return out
	}
	switch seen := s.Seen; {
	case !seen.LockKnown:
		return incorrect(fdbv1alpha1.ReasonStateUnknown, "the destination does not report whether it is locked")
	case seen.LockUID != "":
		return incorrect(fdbv1alpha1.ReasonDatabaseLocked,
			"the destination is locked (%s): another restore runs there, or an operator "+
				"holds the lock. Wait for its end, or unlock the database", seen.LockUID)
	case seen.AgentsPaused:
		return incorrect(fdbv1alpha1.ReasonAgentsPaused,
			"all backup agents of the FoundationDB cluster are paused%s: nothing would be "+
				"restored. Set those FoundationDBBackups to Running, or run fdbbackup resume", s.pausedBy())
	case seen.Agents == 0:
		return incorrect(fdbv1alpha1.ReasonNoAgents, "no backup agents run for the destination, and a restore needs them: create a "+
			"FoundationDBBackup of that cluster, whose Deployment runs them even if it is Stopped, or run backup_agent yourself")
	case !s.Resolved:
		return nil
	case seen.NotEmpty != "":
		return judgeNotEmpty(fmt.Sprintf("the destination holds data in %s", seen.NotEmpty))
	case s.View.Plan == nil && seen.Unresolved != nil:
		return judgeUnresolved(seen.Unresolved)
	case s.View.Plan == nil && seen.Point == nil:
		return misconfigured(fdbv1alpha1.ReasonNotRestorable, "nothing of the backup can be restored yet")
	case s.Busy != "":
		return incorrect(fdbv1alpha1.ReasonDataBusy, "the backup's data cannot be read now: %s", s.Busy)
	}
	return nil
}

func (s Situation) pausedBy() string {
	if len(s.Opposed) == 0 {
		return ""
	}
	return ", as these backups request: " + strings.Join(s.Opposed, ", ")
}

func judgeNotEmpty(what string) *contract.FDBCondition {
	return incorrect(fdbv1alpha1.ReasonDatabaseNotEmpty,
		"%s, and a restore never writes over data: clear what is to be restored, or "+
			"restore into another cluster", what)
}

func judgeUnresolved(trouble *contract.FDBFailure) *contract.FDBCondition {
	switch trouble.Class {
	case contract.FDBClassNotRestorable:
		return misconfigured(fdbv1alpha1.ReasonNotRestorable, "%s", trouble.Message)
	case contract.FDBClassMissing:
		return incorrect(fdbv1alpha1.ReasonDataMissing, "%s", trouble.Message)
	case contract.FDBClassBadURL:
		return misconfigured(fdbv1alpha1.ReasonURLInvalid, "%s", trouble.Message)
	}
	return incorrect(fdbv1alpha1.ReasonToolFailing, "cannot determine what would be restored: %s", trouble.Message)
}

// judgeFailed returns the condition for a failed command. After a start of unknown outcome, the state is read before anything is
// repeated.
func judgeFailed(failed *Attempt) *contract.FDBCondition {
	trouble := failed.Failure
	switch trouble.Class {
	case contract.FDBClassNotEmpty:
		return judgeNotEmpty(trouble.Message)
	case contract.FDBClassLocked:
		return incorrect(fdbv1alpha1.ReasonDatabaseLocked, "%s", trouble.Message)
	case contract.FDBClassToolMissing:
		return misconfigured(fdbv1alpha1.ReasonToolsMissing, "%s", trouble.Message)
	case contract.FDBClassNoWorker:
		return incorrect(fdbv1alpha1.ReasonNoWorker, "%s", trouble.Message)
	case contract.FDBClassNotRestorable, contract.FDBClassMissing, contract.FDBClassBadURL:
		return judgeUnresolved(trouble)
	}
	return incorrect(fdbv1alpha1.ReasonToolFailing, "%s has failed and will be retried: %s",
		Tool(failed.Operation), trouble.Message)
}

// Tool returns the name of an operation for people.
func Tool(operation contract.FDBOperation) string {
	if operation == contract.FDBRestoreAbort {
		return "fdbrestore abort"
	}
	return "fdbrestore start"
}

func (s Situation) judgeRunning() *contract.FDBCondition {
	if out := s.judgeReach(); out != nil {
		return out
	}
	restore := s.restore()
	if restore == nil {
		return s.judgeLost()
	}
	state := restoretool.Observed(restore.State)
	switch {
	case s.Seen.AgentsPaused:
		return incorrect(fdbv1alpha1.ReasonAgentsPaused, "the restore is %s, but all backup agents of the FoundationDB cluster are "+
			"paused%s: nothing is restored until they run again", state, s.pausedBy())
	case s.stuck() && restore.LastError != "":
		return incorrect(fdbv1alpha1.ReasonNoProgress, "the restore has made no progress for %s; its last error: %s. FoundationDB "+
			"keeps retrying. restoreState: Stopped aborts it, and leaves partial data in the destination", noProgress, restore.LastError)
	case s.stuck() && s.Seen.LockKnown && s.Seen.Agents == 0:
		return incorrect(fdbv1alpha1.ReasonNoAgents, "the restore is %s, but no backup agents run for the destination", state)
	}
	return incorrect(fdbv1alpha1.ReasonRestoring, "the restore is %s, %d percent done", state, Percent(s))
}

func (s Situation) judgeLost() *contract.FDBCondition {
	return incorrect(fdbv1alpha1.ReasonStateUnknown,
		"the restore was started, but the destination no longer knows it. It is not started again: check what the database holds, "+
			"and create another FoundationDBRestore")
}
