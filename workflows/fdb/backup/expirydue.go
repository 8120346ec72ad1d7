package backup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// DeletionRequested reports whether the spec asks for the data to be deleted with the object.
func DeletionRequested(object *fdbv1alpha1.FoundationDBBackup) bool {
	wanted := object.Spec.Expiry.DeletionFinalizer
	return wanted == nil || *wanted // an object that was stored without its defaults
}

// WantedJob returns the job for which a backup wants a turn.
func WantedJob(v contract.FDBBackupView) contract.FDBJob {
	switch {
	case !v.Found:
		return contract.FDBJobNone
	case v.BeingDeleted:
		if v.DeleteWanted && !v.Held && !v.NamespaceEnding && len(v.Backups) > 0 {
			return contract.FDBJobDelete
		}
		return contract.FDBJobNone
	case v.Policy && slices.ContainsFunc(v.Backups, hasData):
		return contract.FDBJobExpire
	}
	return contract.FDBJobNone
}

// queueInterval is how often the request is sent again: the queue may have been lost.
const queueInterval = time.Hour

// QueueDue reports whether the queue needs a request. That nothing is wanted is sent only if the queue may know otherwise.
// begins: the queue has had no request from this run.
func QueueDue(v contract.FDBBackupView, m contract.FDBMemory, begins bool, now time.Time) bool {
	action := WantedJob(v)
	if action == contract.FDBJobNone {
		return m.Reported != contract.FDBJobNone || (begins && v.Expiry != nil)
	}
	return begins || action != m.Reported || now.Sub(time.Unix(m.ReportedAt, 0)) >= queueInterval
}

// Gone reports whether the object is gone, or has none of our finalizers left.
func Gone(v contract.FDBBackupView) bool {
	return !v.Found || (v.BeingDeleted && !v.Held && !v.DeleteWanted)
}

// Containers returns the containers that hold data of a backup, sorted. A planned backup has none: data there are somebody
// else's, and a plan must not keep their owner from deleting them.
func Containers(v contract.FDBBackupView) []string {
	return containersOf(v, func(entry contract.FDBBackup) bool { return !IsPlan(entry) })
}

// Mentioned returns the containers of all entries of status.backups, sorted.
func Mentioned(v contract.FDBBackupView) []string {
	return containersOf(v, func(contract.FDBBackup) bool { return true })
}

func containersOf(v contract.FDBBackupView, counts func(contract.FDBBackup) bool) []string {
	var names []string
	for _, entry := range v.Backups {
		if name := fdb.ContainerOf(entry.URL); name != "" && counts(entry) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// NewContainer returns the container of the backup that is about to be started, or "" if none is planned. fresh: nobody else can
// know it, because its path has the second of the start.
func NewContainer(v contract.FDBBackupView) (name string, fresh bool) {
	plan, planned := Situation{View: v}.planned()
	if !planned {
		return "", false
	}
	at, format := time.Date(2031, time.November, 23, 14, 37, 58, 0, time.UTC), v.Desired.TimestampFormat
	return fdb.ContainerOf(plan.URL), at.Format(format) != at.Add(time.Second).Format(format) &&
		at.Format(format) != at.AddDate(0, 0, 1).Format(format)
}

// LeftBehind returns the URLs at which data of a backup stay unless they are deleted.
func LeftBehind(v contract.FDBBackupView) []string {
	var urls []string
	for _, entry := range v.Backups {
		if !IsPlan(entry) {
			urls = append(urls, entry.URL)
		}
	}
	return urls
}

// Later returns the result to keep of two: that of the later turn. What the other turn has deleted is added to it.
func Later(kept *contract.FDBExpiryResult, came contract.FDBExpiryResult) *contract.FDBExpiryResult {
	if kept == nil {
		return &came
	}
	later, earlier := came, *kept
	if came.Turn < kept.Turn {
		later, earlier = *kept, came
	}
	deleted := slices.Concat(earlier.Deleted, later.Deleted)
	slices.Sort(deleted)
	later.Deleted = slices.Compact(deleted)
	return &later
}

// Pending returns the result of a turn that the status does not show yet; nil if there is none. A repeated result is none.
func Pending(v contract.FDBBackupView, m contract.FDBMemory) *contract.FDBExpiryResult {
	if m.Result == nil || (v.Expiry != nil && m.Result.Turn <= v.Expiry.Turn) {
		return nil
	}
	return m.Result
}

// judgeExpiry returns the condition for a last turn that has failed.
func (s Situation) judgeExpiry() *contract.FDBCondition {
	last := s.View.Expiry
	if result := Pending(s.View, s.Memory); result != nil {
		last = &contract.FDBExpiryView{Reason: result.Reason, Message: result.Message}
	}
	if !s.View.Policy || last == nil || last.Reason != fdbv1alpha1.ExpiryFailed {
		return nil
	}
	return incorrect(fdbv1alpha1.ReasonExpiryFailing,
		"old data could not be expired; the backup's next turn retries it: %s", fdb.Bound(last.Message, MaxMessage/2))
}

// afterTurn applies the result of a turn to an entry of status.backups, and reports whether its data are gone.
func (s Situation) afterTurn(entry contract.FDBBackup, described bool) (contract.FDBBackup, bool) {
	result := Pending(s.View, s.Memory)
	if result == nil {
		return entry, false
	}
	if container := result.Container; container != nil && !described && SamePlace(container.URL, entry.URL) {
		entry = withRange(entry, *container)
	}
	deleted := slices.ContainsFunc(result.Deleted, func(url string) bool { return SamePlace(url, entry.URL) })
	return entry, deleted && !s.runsAt(entry.URL)
}

// Cleared returns the release of an object whose data were to be deleted, by the result of its turn.
func Cleared(result contract.FDBExpiryResult) contract.FDBRelease {
	switch {
	case len(result.Kept) > 0:
		return contract.FDBRelease{
			Data: true, Reason: fdbv1alpha1.ExpiryKept,
			Note: fdb.Bound("data stay because others use them: "+strings.Join(result.Kept, ", "), MaxMessage),
		}
	case result.Outcome == contract.FDBTurnNothing && len(result.Deleted) == 0:
		return NothingToDelete()
	}
	return contract.FDBRelease{Data: true, Reason: fdbv1alpha1.ExpiryDeleted, Note: "the data of the backup are deleted"}
}

// NothingToDelete returns the release of an object that has no data.
func NothingToDelete() contract.FDBRelease {
	return contract.FDBRelease{Data: true, Reason: fdbv1alpha1.ExpiryDeleted, Note: "the backup has no data to delete"}
}

// eventDataLeft is the reason of the Event for data that stay when their namespace is deleted.
const eventDataLeft = "DataLeft"

// LeaveData returns the release of an object whose namespace is being deleted: no pod can be created there, so its data stay.
func LeaveData(v contract.FDBBackupView) contract.FDBRelease {
	urls := LeftBehind(v)
	if len(urls) == 0 {
		return NothingToDelete()
	}
	return contract.FDBRelease{
		Data: true, Reason: eventDataLeft, Warning: true, DataKept: urls,
		Note: fdb.Bound(fmt.Sprintf(
			"the data stay at %s: the namespace is being deleted, so no pod can delete them. Delete them by hand (fdbbackup delete "+
				"-d URL)", strings.Join(urls, ", ")), MaxMessage),
	}
}
