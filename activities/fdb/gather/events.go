package gather

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/conditions"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// Event is the content of a Kubernetes Event.
type Event struct {
	Warning      bool
	Reason, Note string
}

// Reasons of Events that are not those of conditions.
const (
	eventRestorable = "Restorable"
	eventReconciled = fdbv1alpha1.ReasonReconciled
)

// ConditionEvent returns the Event for a condition that begins.
func ConditionEvent(begun metav1.Condition) Event {
	return Event{Warning: !fdbv1alpha1.UnderWay(begun.Reason), Reason: begun.Reason, Note: begun.Type + ": " + begun.Message}
}

// StatusEvents returns the Events for a change of the status: a condition begins or gets another reason, a backup becomes
// restorable, or the backup matches its spec again.
func StatusEvents(before, after fdbv1alpha1.FoundationDBBackupStatus) []Event {
	var events []Event
	for _, begun := range conditions.Begun(before.Conditions, after.Conditions) {
		if begun.Reason == fdbv1alpha1.ReasonExpiryFailing {
			continue // ExpiryEvent reports turns
		}
		events = append(events, ConditionEvent(begun))
	}
	for _, entry := range after.Backups {
		at := slices.IndexFunc(before.Backups, func(e fdbv1alpha1.BackupDetails) bool { return fdbbackup.SamePlace(e.URL, entry.URL) })
		if entry.LatestRestorable != nil && (at < 0 || before.Backups[at].LatestRestorable == nil) {
			events = append(events, Event{Reason: eventRestorable, Note: "the backup at " + entry.URL + " can be restored from now on"})
		}
	}
	if event := objectiveEvent(before.Conditions, after.Conditions); event != nil {
		events = append(events, *event)
	}
	if after.Reconciled && !before.Reconciled {
		events = append(events, Event{Reason: eventReconciled, Note: "the backup matches its spec"})
	}
	return events
}

// ExpiryEvent returns the Event for a new result of a turn, nil if there is nothing new. deleting: the object is being deleted.
func ExpiryEvent(before, after *fdbv1alpha1.BackupExpiryStatus, deleting bool) *Event {
	if after == nil || (before != nil && before.Turn == after.Turn) {
		return nil
	}
	same := before != nil && before.Reason == after.Reason
	event := &Event{Reason: string(after.Reason), Note: after.Message}
	switch after.Reason {
	case fdbv1alpha1.ExpiryFailed, fdbv1alpha1.ExpiryWaiting:
		same = same && before.Message == after.Message
		event.Warning = deleting || after.Reason == fdbv1alpha1.ExpiryFailed
		if after.Reason == fdbv1alpha1.ExpiryFailed {
			event.Reason = fdbv1alpha1.ReasonExpiryFailing
		}
	case fdbv1alpha1.ExpiryExpired:
		same = same && before.Message == after.Message
	}
	if same {
		return nil
	}
	return event
}
