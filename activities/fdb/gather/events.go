package gather

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/conditions"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// Tiding is what an Event tells.
type Tiding struct {
	Warning      bool
	Reason, Note string
}

// Reasons of Events that are not those of conditions.
const (
	eventRestorable = "Restorable"
	eventReconciled = fdbv1alpha1.ReasonReconciled
)

// Of is what the beginning of a condition is worth telling.
func Of(begun metav1.Condition) Tiding {
	return Tiding{Warning: !conditions.UnderWay(begun.Reason), Reason: begun.Reason, Note: begun.Type + ": " + begun.Message}
}

// Tidings are what a change of the status is worth telling: a condition that begins or gets another reason, a backup that can be
// restored from for the first time, and the return to order.
func Tidings(before, after fdbv1alpha1.FoundationDBBackupStatus) []Tiding {
	var tidings []Tiding
	for _, begun := range conditions.Begun(before.Conditions, after.Conditions) {
		if begun.Reason == fdbv1alpha1.ReasonExpiryFailing {
			continue // what became of a turn is ExpiryTiding's to tell
		}
		tidings = append(tidings, Of(begun))
	}
	for _, entry := range after.Backups {
		at := slices.IndexFunc(before.Backups, func(e fdbv1alpha1.BackupDetails) bool { return fdbbackup.SamePlace(e.URL, entry.URL) })
		if entry.LatestRestorable != nil && (at < 0 || before.Backups[at].LatestRestorable == nil) {
			tidings = append(tidings, Tiding{Reason: eventRestorable, Note: "the backup at " + entry.URL + " can be restored from now on"})
		}
	}
	if after.Reconciled && !before.Reconciled {
		tidings = append(tidings, Tiding{Reason: eventReconciled, Note: "the backup is as the spec says"})
	}
	return tidings
}

// ExpiryTiding is what a new result of a turn is worth telling; nil if it is nothing new. deleting: the object is.
func ExpiryTiding(before, after *fdbv1alpha1.BackupExpiryStatus, deleting bool) *Tiding {
	if after == nil || (before != nil && before.Turn == after.Turn) {
		return nil
	}
	same := before != nil && before.Reason == after.Reason
	tiding := &Tiding{Reason: string(after.Reason), Note: after.Message}
	switch after.Reason {
	case fdbv1alpha1.ExpiryFailed, fdbv1alpha1.ExpiryWaiting:
		same = same && before.Message == after.Message
		tiding.Warning = deleting || after.Reason == fdbv1alpha1.ExpiryFailed
		if after.Reason == fdbv1alpha1.ExpiryFailed {
			tiding.Reason = fdbv1alpha1.ReasonExpiryFailing
		}
	case fdbv1alpha1.ExpiryExpired:
		same = same && before.Message == after.Message
	}
	if same {
		return nil
	}
	return tiding
}
