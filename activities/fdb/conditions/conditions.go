package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Found is what a pass of a workflow found.
type Found struct {
	// Held are the conditions that hold, except Ready.
	Held []contract.FDBCondition
	// Otherwise is what Ready says if none holds.
	Otherwise Outcome
	// Generation is that of the spec that was read.
	Generation int64
	At         time.Time
}

// List returns the new status.conditions: those that hold, each with status True, and Ready. A condition's time is when its
// reason began to hold; Ready's is when its status changed.
func List(before []metav1.Condition, found Found) []metav1.Condition {
	list := make([]metav1.Condition, 0, len(found.Held)+1)
	add := func(kind string, says Outcome, same func(earlier metav1.Condition) bool) {
		since := metav1.NewTime(found.At).Rfc3339Copy()
		if earlier := meta.FindStatusCondition(before, kind); earlier != nil && same(*earlier) {
			since = earlier.LastTransitionTime
		}
		list = append(list, metav1.Condition{
			Type: kind, Status: says.Status, Reason: says.Reason, Message: says.Message,
			ObservedGeneration: found.Generation, LastTransitionTime: since,
		})
	}
	for _, held := range found.Held {
		says := Outcome{Status: metav1.ConditionTrue, Reason: held.Reason, Message: held.Message}
		add(held.Type, says, func(earlier metav1.Condition) bool { return earlier.Reason == held.Reason })
	}
	ready := Ready(found.Held, found.Otherwise)
	add(fdbv1alpha1.ConditionReady, ready, func(earlier metav1.Condition) bool { return earlier.Status == ready.Status })
	return list
}

// Begun returns the conditions that hold now and did not before, or for another reason. Ready, which repeats one of them, is left
// out.
func Begun(before, now []metav1.Condition) []metav1.Condition {
	var begun []metav1.Condition
	for _, condition := range fdbv1alpha1.Unmet(now) {
		earlier := meta.FindStatusCondition(before, condition.Type)
		if earlier == nil || earlier.Reason != condition.Reason {
			begun = append(begun, condition)
		}
	}
	return begun
}
