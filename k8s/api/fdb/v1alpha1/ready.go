package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionReady is True if everything is as the spec asks: a backup in its desired state with its agents rolled out, a restore
// completed and verified. It is Unknown while the state cannot be read, and otherwise False, with the reason and message of the
// most important of the conditions below. It is always present once the object was observed.
const ConditionReady = "Ready"

// Reasons of Ready that are not those of another condition.
const (
	// ReasonReconciled: a backup is as its spec asks. Ready is True.
	ReasonReconciled = "Reconciled"
	// ReasonCompleted: everything is restored and verified. Ready is True.
	ReasonCompleted = "Completed"
	// ReasonDeleting: the object is being deleted. Ready is False.
	ReasonDeleting = "Deleting"
)

// Unmet returns the specification's conditions among those of a status, each of which says that something is not as the spec
// asks: all but Ready.
func Unmet(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return c.Type == ConditionReady })
}
