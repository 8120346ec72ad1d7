package restore

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// ApplyFindings writes what a pass found into the status. A condition is in the list only while it holds; its time is that of
// its last beginning, or of the last change of its reason. A restore that is over stays as it ended.
func ApplyFindings(object *fdbv1alpha1.FoundationDBRestore, findings contract.FDBRestoreFindings, now time.Time) {
	status := &object.Status
	if restoretool.Over(status.State) && findings.State != status.State {
		return // a pass that is late
	}
	status.ObservedGeneration = findings.Generation
	status.State = findings.State
	var conditions []metav1.Condition
	for _, found := range findings.Conditions {
		since := metav1.NewTime(now).Rfc3339Copy()
		before := meta.FindStatusCondition(status.Conditions, found.Type)
		if before != nil && before.Reason == found.Reason {
			since = before.LastTransitionTime
		}
		conditions = append(conditions, metav1.Condition{
			Type: found.Type, Status: metav1.ConditionTrue, Reason: found.Reason, Message: found.Message,
			ObservedGeneration: findings.Generation, LastTransitionTime: since,
		})
	}
	status.Conditions = conditions
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
			Name: task.Name, Phase: task.Phase, Errors: task.Errors,
		})
	}
}

// Reasons of Events that are not those of conditions.
const (
	eventStarted   = "RestoreStarted"
	eventCompleted = "RestoreCompleted"
	eventAborted   = "RestoreAborted"
	eventFailed    = "RestoreFailed"
)

// progressing are the reasons of conditions that are no fault: the way to the end of a restore.
var progressing = []string{
	fdbv1alpha1.ReasonNotStarted, fdbv1alpha1.ReasonRestoring, fdbv1alpha1.ReasonNotAborted, fdbv1alpha1.ReasonDataBusy,
}

// Tidings are what a change of the status is worth telling: a condition that begins or gets another reason, the start and the
// end.
func Tidings(before, after fdbv1alpha1.FoundationDBRestoreStatus) []gather.Tiding {
	var tidings []gather.Tiding
	for _, now := range after.Conditions {
		earlier := meta.FindStatusCondition(before.Conditions, now.Type)
		if earlier != nil && earlier.Reason == now.Reason {
			continue
		}
		tidings = append(tidings, gather.Tiding{
			Warning: !slices.Contains(progressing, now.Reason), Reason: now.Reason, Note: now.Type + ": " + now.Message,
		})
	}
	begun := []string{restoretool.NameQueued, restoretool.NameStarting, restoretool.NameRunning}
	if slices.Contains(begun, after.State) && !slices.Contains(begun, before.State) && after.Plan != nil {
		tidings = append(tidings, gather.Tiding{Reason: eventStarted, Note: fmt.Sprintf(
			"version %d of %s is being restored: the database is locked until the end", after.Plan.Version, after.Plan.URL)})
	}
	if after.State == before.State {
		return tidings
	}
	switch after.State {
	case restoretool.NameCompleted:
		note := fmt.Sprintf("version %d is restored", after.RestoredVersion)
		tidings = append(tidings, gather.Tiding{Reason: eventCompleted, Note: note})
	case restoretool.NameAborted:
		note := "the restore was aborted before it had been started"
		partial := before.State != "" && before.State != "pending"
		if partial {
			note = "the restore was aborted: the destination holds partial data"
		}
		tidings = append(tidings, gather.Tiding{Warning: partial, Reason: eventAborted, Note: note})
	case restoretool.NameFailed:
		tidings = append(tidings, gather.Tiding{Warning: true, Reason: eventFailed, Note: "the restore has failed: see its conditions"})
	}
	return tidings
}
