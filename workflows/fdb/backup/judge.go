package backup

import (
	"fmt"
	"strings"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// Attempt is the last command of a pass, if it failed or was put off.
type Attempt struct {
	Operation contract.FDBOperation
	// Failure is what the tool reported; nil if the command was only put off.
	Failure *contract.FDBFailure
}

// Judge returns the conditions that hold, in a fixed order (docs/foundationdb.md, "Conditions"). failed is the command of the
// last pass that was not done, or nil.
func Judge(s Situation, failed *Attempt) []contract.FDBCondition {
	var conditions []contract.FDBCondition
	add := func(condition *contract.FDBCondition) {
		if condition != nil {
			conditions = append(conditions, *condition)
		}
	}
	add(judgeDeployment(s.View))
	add(judgeRollout(s.View))
	configuration := judgeConfiguration(s, failed)
	var state *contract.FDBCondition
	if configuration == nil || s.View.Problem == nil {
		state = judgeState(s, failed)
	}
	if state == nil {
		state = s.judgeExpiry()
	}
	add(state)
	add(configuration)
	return conditions
}

func condition(kind, reason, format string, args ...any) *contract.FDBCondition {
	return &contract.FDBCondition{Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func incorrect(reason, format string, args ...any) *contract.FDBCondition {
	return condition(fdbv1alpha1.ConditionIncorrectBackupState, reason, format, args...)
}

func misconfigured(reason, format string, args ...any) *contract.FDBCondition {
	return condition(fdbv1alpha1.ConditionMisconfiguredBackup, reason, format, args...)
}

func judgeDeployment(v contract.FDBBackupView) *contract.FDBCondition {
	incorrect := func(reason, format string, args ...any) *contract.FDBCondition {
		return condition(fdbv1alpha1.ConditionIncorrectDeployment, reason, format, args...)
	}
	switch agents := v.Agents; {
	case v.Owner == "":
		return nil // without a cluster it is not known what it should be
	case agents.Invalid != "":
		return incorrect(fdbv1alpha1.ReasonTemplateInvalid, "%s", agents.Invalid)
	case agents.Refused != "":
		return incorrect(fdbv1alpha1.ReasonDeploymentRefused, "the Deployment of the backup agents is refused: %s", agents.Refused)
	case !agents.Exists:
		return incorrect(fdbv1alpha1.ReasonDeploymentMissing, "the Deployment of the backup agents does not exist yet")
	case !agents.Ours:
		return incorrect(fdbv1alpha1.ReasonDeploymentNotOurs, "a Deployment with the backup's name exists and was not made for "+
			"it: delete that Deployment, or create the backup under another name")
	case !agents.Current:
		return incorrect(fdbv1alpha1.ReasonDeploymentDiffers, "the Deployment of the backup agents differs from the spec")
	}
	return nil
}

func judgeRollout(v contract.FDBBackupView) *contract.FDBCondition {
	if agents := v.Agents; v.Owner != "" && agents.Exists && agents.Ours && !agents.RolledOut {
		return condition(fdbv1alpha1.ConditionDeploymentRollingOut, fdbv1alpha1.ReasonAgentsNotReady,
			"%d of %d backup agents are ready: see the pods with label %s", agents.Ready, agents.Wanted, fdbv1alpha1.LabelBackup)
	}
	return nil
}

// judgeConfiguration returns the condition for what the user, or an administrator, has to correct, and for parameters that
// differ.
func judgeConfiguration(s Situation, failed *Attempt) *contract.FDBCondition {
	if s.View.Problem != nil {
		return s.View.Problem
	}
	if trouble := s.trouble(failed); trouble != nil {
		reason, is := map[contract.FDBClass]string{
			contract.FDBClassToolMissing: fdbv1alpha1.ReasonToolsMissing, contract.FDBClassClusterFile: fdbv1alpha1.ReasonClusterNotReady,
			contract.FDBClassBadURL: fdbv1alpha1.ReasonDestinationInvalid, contract.FDBClassUsed: fdbv1alpha1.ReasonContainerUsed,
		}[trouble.Class]
		if is {
			return misconfigured(reason, "%s", trouble.Message)
		}
	}
	if Stopping(s.View) || s.Seen.Failure != nil {
		return nil
	}
	current, runs := s.Current()
	_, outdated := s.outdated()
	starts := (outdated || !runs) && !s.TagTaken()
	if starts && s.Used() {
		return misconfigured(fdbv1alpha1.ReasonContainerUsed, "there is a backup at %s already, and a second one in the same "+
			"place could not be restored: set destination.timestampFormat, or another destination.path", s.View.Desired.URL)
	}
	if starts && s.TooMany() {
		return misconfigured(fdbv1alpha1.ReasonTooManyBackups, "the places in status.backups hold data of %d backups: "+
			"delete some (fdbbackup delete -d URL) before another is started", len(s.View.Backups))
	}
	if runs && s.Differs(current) {
		return misconfigured(fdbv1alpha1.ReasonParametersDiffer,
			"the running backup's snapshot period or URL parameters differ from the spec")
	}
	return nil
}

// trouble returns the failure of the last inspection or command.
func (s Situation) trouble(failed *Attempt) *contract.FDBFailure {
	if s.Seen.Failure != nil {
		return s.Seen.Failure
	}
	if failed != nil {
		return failed.Failure
	}
	return nil
}

func judgeState(s Situation, failed *Attempt) *contract.FDBCondition {
	if trouble := s.trouble(failed); trouble != nil && trouble.Class == contract.FDBClassNoWorker {
		return incorrect(fdbv1alpha1.ReasonNoWorker, "%s", trouble.Message)
	}
	if trouble := s.Seen.Failure; trouble != nil {
		if trouble.Class == contract.FDBClassTimeout {
			return incorrect(fdbv1alpha1.ReasonClusterUnreachable, "%s", trouble.Message)
		}
		return incorrect(fdbv1alpha1.ReasonStateUnknown, "the state of the backup cannot be read: %s", trouble.Message)
	}
	if failed != nil && failed.Failure != nil && failed.Failure.Class == contract.FDBClassFuture {
		return incorrect(fdbv1alpha1.ReasonLastStartInFuture, "%s", failed.Failure.Message)
	}
	if failed != nil && failed.Failure != nil {
		return incorrect(fdbv1alpha1.ReasonToolFailing, "fdbbackup %s has failed and will be retried: %s",
			failed.Operation, failed.Failure.Message)
	}
	if Stopping(s.View) {
		return s.judgeStopped()
	}
	if s.TagTaken() {
		return incorrect(fdbv1alpha1.ReasonTagTaken, "a backup that was not made for this object runs on tag %s of the cluster: "+
			"abort it (fdbbackup abort -t %s) or choose another spec.tag", s.View.Desired.Tag, s.View.Desired.Tag)
	}
	current, runs := s.Current()
	if _, restarts := s.outdated(); restarts || !runs {
		return s.judgeStart(restarts)
	}
	if paused := s.judgePaused(); paused != nil {
		return paused
	}
	if data := s.judgeData(current); data != nil {
		return data
	}
	if s.View.Desired.State != string(fdbv1alpha1.BackupStateRunning) || s.complete(current) {
		return nil
	}
	return s.judgeSnapshot(current)
}

func (s Situation) judgeStopped() *contract.FDBCondition {
	for _, tag := range s.Seen.Tags {
		if tag.Running && s.ours(tag) {
			return incorrect(fdbv1alpha1.ReasonNotStopped, "the backup on tag %s is %s and will be stopped", tag.Tag, tag.State)
		}
	}
	return nil
}

func (s Situation) judgeStart(restarts bool) *contract.FDBCondition {
	what, reason := "the backup is not running", fdbv1alpha1.ReasonNotRunning
	if restarts {
		what = "the backup will be started again, because its destination, tag or key ranges have changed"
		reason = fdbv1alpha1.ReasonRestarting
	}
	if s.Memory.Slot == contract.FDBSlotRequested {
		what, reason = what+": it waits until fewer backups of this Kubernetes cluster are in their first snapshot",
			fdbv1alpha1.ReasonWaitingForSlot
		if restarts {
			what += "; the old one runs until then"
		}
	}
	return incorrect(reason, "%s", what)
}

func (s Situation) judgePaused() *contract.FDBCondition {
	wanted := s.View.Desired.State == string(fdbv1alpha1.BackupStatePaused)
	switch {
	case len(s.Memory.Opposed) > 0 && wanted:
		return incorrect(fdbv1alpha1.ReasonPauseDisagreement, "a pause applies to all backups of the FoundationDB cluster, and "+
			"these must run: %s. Set them to Paused or Stopped too", strings.Join(s.Memory.Opposed, ", "))
	case len(s.Memory.Opposed) > 0:
		return incorrect(fdbv1alpha1.ReasonPauseDisagreement, "the backup runs, but these backups of the same FoundationDB cluster "+
			"request a pause, which applies to all: %s", strings.Join(s.Memory.Opposed, ", "))
	case wanted && !s.Seen.AgentsPaused:
		return incorrect(fdbv1alpha1.ReasonNotPaused, "the backup agents of the cluster are not paused yet")
	case !wanted && s.Seen.AgentsPaused:
		return incorrect(fdbv1alpha1.ReasonNotResumed, "the backup agents of the cluster are still paused")
	}
	return nil
}

// judgeData returns the condition for data that were deleted by others: the database goes on calling such a backup restorable.
func (s Situation) judgeData(current contract.FDBTag) *contract.FDBCondition {
	for _, container := range s.Seen.Containers {
		if container.Missing && current.Restorable && SamePlace(container.URL, current.URL) {
			return incorrect(fdbv1alpha1.ReasonDataMissing,
				"there are no data at %s, although the backup runs: somebody has deleted them. To begin a new backup, set backupState "+
					"to Stopped and then to Running", container.URL)
		}
	}
	return nil
}

// complete: the first snapshot is complete, and every version since can be restored.
func (s Situation) complete(current contract.FDBTag) bool {
	return current.State == fdb.StateRunningDifferentially && current.Restorable
}

func (s Situation) judgeSnapshot(current contract.FDBTag) *contract.FDBCondition {
	reason, what := fdbv1alpha1.ReasonInitialSnapshot, fmt.Sprintf(
		"the first snapshot is being written, %d bytes so far: nothing can be restored yet", current.RangeBytes)
	if current.State == fdb.StateSubmitted {
		reason, what = fdbv1alpha1.ReasonWaitingForAgents, "the backup was started and waits for a backup agent to begin"
		if s.View.Agents.Wanted == 0 {
			what += "; spec.agentCount is 0"
		}
	}
	if s.Memory.Stalled {
		reason = fdbv1alpha1.ReasonSnapshotStalled
		what += ". It has made no progress for long: see the agents' logs. Others may write their first snapshots meanwhile"
	}
	if len(current.Errors) > 0 {
		what += ". Recent errors of the agents: " + strings.Join(current.Errors, "; ")
	}
	return incorrect(reason, "%s", fdb.Bound(what, MaxMessage))
}

// MaxMessage bounds a condition's message.
const MaxMessage = 1024
