package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionReady is True if everything is as the spec says: a backup in its desired state with its agents rolled out, a restore
// completed and verified. It is Unknown while the state cannot be read, and otherwise False. Reason and message are those of the
// most important other condition. It is present once the object was observed.
const ConditionReady = "Ready"

// Reasons of Ready that are not those of another condition.
const (
	// ReasonReconciled: a backup is as its spec says. Ready is True.
	ReasonReconciled = "Reconciled"
	// ReasonCompleted: everything is restored and verified. Ready is True.
	ReasonCompleted = "Completed"
	// ReasonDeleting: the object is being deleted. Ready is False.
	ReasonDeleting = "Deleting"
)

// ConditionObjectiveMet is True while the latest restorable point is recent enough. It is absent without an objective. Its
// reasons are those of a BackupPlan: Met, Stale, NeverSucceeded, Unknown and Paused.
const ConditionObjectiveMet = "ObjectiveMet"

// Conditions by which tools judge an object whose kind they do not know, see package kstatus. They are present only while they
// are True, with the reason and message of Ready.
const (
	// ConditionReconciling: the object becomes what its spec says, or its state cannot be read.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: something is wrong, and in most cases somebody has to act.
	ConditionStalled = "Stalled"
)

// summaries are the conditions that follow from others.
var summaries = []string{ConditionReady, ConditionObjectiveMet, ConditionReconciling, ConditionStalled}

// Unmet returns the conditions of a status that say what is not as the spec says.
func Unmet(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return slices.Contains(summaries, c.Type) })
}

// underWay are the reasons of conditions that are no fault.
var underWay = []string{
	ReasonDeploymentMissing, ReasonDeploymentDiffers, ReasonAgentsNotReady,
	ReasonNotRunning, ReasonNotStopped, ReasonNotPaused, ReasonNotResumed,
	ReasonWaitingForSlot, ReasonWaitingForAgents, ReasonInitialSnapshot,
	ReasonRestarting, ReasonParametersDiffer,
	ReasonNotStarted, ReasonRestoring, ReasonNotAborted, ReasonDataBusy,
}

// UnderWay reports whether a condition with this reason is no fault and ends by itself.
func UnderWay(reason string) bool { return slices.Contains(underWay, reason) }

// passing are the reasons of faults that may pass without anybody's action: the cluster is being made, or a command is retried.
var passing = []string{
	ReasonDeleting, ReasonClusterMissing, ReasonClusterNotReady, ReasonToolFailing, ReasonLastStartInFuture,
	ReasonDatabaseLocked, ReasonBackupMissing, ReasonNotRestorable, ReasonNoAgents,
}

func actionNeeded(reason string) bool { return !UnderWay(reason) && !slices.Contains(passing, reason) }

// StatusConditions are status.conditions.
func (b *FoundationDBBackup) StatusConditions() *[]metav1.Condition { return &b.Status.Conditions }

// ActionNeeded reports whether somebody has to act on this reason of a Ready that is False.
func (*FoundationDBBackup) ActionNeeded(reason string) bool { return actionNeeded(reason) }

// StatusConditions are status.conditions.
func (r *FoundationDBRestore) StatusConditions() *[]metav1.Condition { return &r.Status.Conditions }

// ActionNeeded reports whether somebody has to act on this reason of a Ready that is False.
func (*FoundationDBRestore) ActionNeeded(reason string) bool { return actionNeeded(reason) }
