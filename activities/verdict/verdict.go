package verdict

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/shorten"
)

// MaxMessage is how many bytes a message of a finding or of the condition has at most: the API server accepts no more.
const MaxMessage = 512

// Set sets the condition Verified of a drill of that generation.
func Set(conditions *[]metav1.Condition, generation int64, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: holdfastv1alpha1.ConditionVerified, Status: status, ObservedGeneration: generation, Reason: reason,
		Message: shorten.Text(message, MaxMessage),
	})
}

// Of returns the condition Verified; nil if there is none.
func Of(conditions []metav1.Condition) *metav1.Condition {
	return meta.FindStatusCondition(conditions, holdfastv1alpha1.ConditionVerified)
}

// Add adds a finding, of which a status shows so many; more counts the others.
func Add(
	findings *[]holdfastv1alpha1.DrillFinding, more *int64, check string, result holdfastv1alpha1.DrillResult, message string,
) {
	if len(*findings) >= holdfastv1alpha1.MaxDrillFindings {
		*more++
		return
	}
	*findings = append(*findings, holdfastv1alpha1.DrillFinding{
		Check: check, Result: result, Message: shorten.Text(message, MaxMessage),
	})
}

// EventType is that of the Event about a verdict.
func EventType(verified *metav1.Condition) string {
	if verified.Status == metav1.ConditionTrue {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// Seconds is a duration as a status has it.
func Seconds(d time.Duration) int64 { return max(0, int64(d.Round(time.Second)/time.Second)) }
