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

// Unmet returns the conditions of a status that say what is not as the spec says: all but Ready and ObjectiveMet.
func Unmet(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
		return c.Type == ConditionReady || c.Type == ConditionObjectiveMet
	})
}
