package gather

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/plan"
)

// objectiveOf is what the objective of a backup is judged by; false without one. A backup that is not to run is as a plan that is
// paused.
func objectiveOf(object *fdbv1alpha1.FoundationDBBackup) (plan.Objective, bool) {
	if object.Spec.Objective == nil || !object.DeletionTimestamp.IsZero() {
		return plan.Objective{}, false
	}
	point, err := time.ParseDuration(object.Spec.Objective.RecoveryPoint)
	objective := plan.Objective{RecoveryPoint: point, Created: object.CreationTimestamp.Time}
	for _, entry := range object.Status.Backups {
		if latest := entry.LatestRestorable; latest != nil && latest.Timestamp != nil && latest.Timestamp.After(objective.LastGood) {
			objective.LastGood = latest.Timestamp.Time
		}
	}
	wanted := object.Spec.BackupState
	objective.Paused = wanted != "" && wanted != fdbv1alpha1.BackupStateRunning
	return objective, err == nil // which the CRD has validated
}

// applyObjective writes the condition, which is not one of those that say what is not as the spec says.
func applyObjective(object *fdbv1alpha1.FoundationDBBackup, before []metav1.Condition, now time.Time) {
	objective, is := objectiveOf(object)
	if !is {
		return
	}
	verdict, _ := objective.Judge(now)
	if objective.Paused {
		verdict = plan.Paused
	}
	point, status, message := object.Spec.Objective.RecoveryPoint, metav1.ConditionFalse, ""
	switch verdict {
	case plan.Met:
		status, message = metav1.ConditionTrue, "the latest restorable point is younger than "+point
	case plan.Stale:
		latest := objective.LastGood.UTC().Format(time.RFC3339)
		message = fmt.Sprintf("the latest restorable point is of %s, more than %s ago", latest, point)
	case plan.NeverSucceeded:
		message = "nothing can be restored, and the backup is older than " + point
	case plan.Unknown:
		status, message = metav1.ConditionUnknown, "nothing can be restored yet, and the backup is younger than "+point
	case plan.Paused:
		status, message = metav1.ConditionUnknown, "backupState is not Running"
	}
	if earlier := meta.FindStatusCondition(before, fdbv1alpha1.ConditionObjectiveMet); earlier != nil {
		object.Status.Conditions = append(object.Status.Conditions, *earlier)
	}
	meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
		Type: fdbv1alpha1.ConditionObjectiveMet, Status: status, Reason: string(verdict), Message: message,
		ObservedGeneration: object.Status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})
}

// objectiveEvent returns the Event for a change of the condition, nil if there is nothing new.
func objectiveEvent(before, after []metav1.Condition) *Event {
	was := meta.FindStatusCondition(before, fdbv1alpha1.ConditionObjectiveMet)
	is := meta.FindStatusCondition(after, fdbv1alpha1.ConditionObjectiveMet)
	if is == nil || is.Status == metav1.ConditionUnknown || (was != nil && was.Reason == is.Reason) {
		return nil
	}
	return &Event{Warning: is.Status == metav1.ConditionFalse, Reason: is.Reason, Note: is.Type + ": " + is.Message}
}
