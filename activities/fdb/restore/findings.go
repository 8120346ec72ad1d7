package restore

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/conditions"
	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// ApplyFindings writes the findings of a pass into the status. A restore that is over stays as it ended.
func ApplyFindings(object *fdbv1alpha1.FoundationDBRestore, findings contract.FDBRestoreFindings, now time.Time) {
	status, state := &object.Status, restoretool.Observed(findings.State)
	if status.State.Final() && state != status.State {
		return // late findings of an earlier pass
	}
	status.ObservedGeneration = findings.Generation
	status.State = state
	status.Conditions = conditions.List(status.Conditions, conditions.Found{
		Held: findings.Conditions, Otherwise: ended(findings), Generation: findings.Generation, At: now,
	})
	if findings.Percent != 0 || findings.BytesWritten != 0 {
		status.Progress = &fdbv1alpha1.RestoreProgress{PercentDone: findings.Percent, BytesWritten: findings.BytesWritten}
	}
	if findings.Restored != 0 {
		status.RestoredVersion = findings.Restored
	}
	if len(findings.Tasks) > 0 {
		status.Finalization = nil
	}
	for _, task := range findings.Tasks {
		status.Finalization = append(status.Finalization, fdbv1alpha1.RestoreTask{
			Name: fdbv1alpha1.RestoreTaskName(task.Name), Phase: fdbv1alpha1.RestoreTaskPhase(task.Phase), Errors: task.Errors,
		})
	}
}

// ended is what Ready says if no condition holds. Ready is True only if the data are restored: a restore that was stopped before
// its start is as the spec says, and yet not Ready.
func ended(findings contract.FDBRestoreFindings) conditions.Outcome {
	if restoretool.Observed(findings.State) == fdbv1alpha1.RestoreCompleted {
		return conditions.Outcome{
			Status: metav1.ConditionTrue, Reason: fdbv1alpha1.ReasonCompleted,
			Message: fmt.Sprintf("version %d is restored and verified", findings.Restored),
		}
	}
	return conditions.Outcome{
		Status: metav1.ConditionFalse, Reason: fdbv1alpha1.ReasonAborted,
		Message: "the restore was stopped before it was started: nothing was restored",
	}
}

// Reasons of Events that are not those of conditions.
const (
	eventStarted   = "RestoreStarted"
	eventCompleted = "RestoreCompleted"
	eventAborted   = "RestoreAborted"
	eventFailed    = "RestoreFailed"
)

// StatusEvents returns the Events for a change of the status: a condition begins or gets another reason, the restore starts or
// ends.
func StatusEvents(before, after fdbv1alpha1.FoundationDBRestoreStatus) []gather.Event {
	var events []gather.Event
	for _, begun := range conditions.Begun(before.Conditions, after.Conditions) {
		events = append(events, gather.ConditionEvent(begun))
	}
	begun := []fdbv1alpha1.ObservedRestoreState{fdbv1alpha1.RestoreQueued, fdbv1alpha1.RestoreStarting, fdbv1alpha1.RestoreRunning}
	if slices.Contains(begun, after.State) && !slices.Contains(begun, before.State) && after.Plan != nil {
		events = append(events, gather.Event{Reason: eventStarted, Note: fmt.Sprintf(
			"version %d of %s is being restored: the database is locked until the end", after.Plan.Version, after.Plan.URL)})
	}
	if after.State == before.State {
		return events
	}
	switch after.State {
	case fdbv1alpha1.RestoreCompleted:
		note := fmt.Sprintf("version %d is restored", after.RestoredVersion)
		events = append(events, gather.Event{Reason: eventCompleted, Note: note})
	case fdbv1alpha1.RestoreAborted:
		note := "the restore was aborted before it had been started"
		partial := before.State != "" && before.State != fdbv1alpha1.RestorePending
		if partial {
			note = "the restore was aborted: the destination holds partial data"
		}
		events = append(events, gather.Event{Warning: partial, Reason: eventAborted, Note: note})
	case fdbv1alpha1.RestoreFailed:
		events = append(events, gather.Event{Warning: true, Reason: eventFailed, Note: "the restore has failed: see its conditions"})
	}
	return events
}
