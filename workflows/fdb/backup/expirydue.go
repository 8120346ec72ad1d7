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
	asked := object.Spec.Expiry.DeletionFinalizer
	return asked == nil || *asked // an object that was stored without its defaults
}

// WantedJob is what a backup wants of the queue of expirations.
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

// queueInterval is how often the queue is told again of what is wanted: it may have been lost.
const queueInterval = time.Hour

// QueueDue reports whether the queue is to be told of what is wanted. That nothing is wanted only one that may know otherwise
// has to learn. begins: it is the first time in this run.
func QueueDue(v contract.FDBBackupView, m contract.FDBMemory, begins bool, now time.Time) bool {
	action := WantedJob(v)
	if action == contract.FDBJobNone {
		return m.Reported != contract.FDBJobNone || (begins && v.Expiry != nil)
	}
	return begins || action != m.Reported || now.Sub(time.Unix(m.ReportedAt, 0)) >= queueInterval
}

// Gone reports whether nothing of ours keeps the object any more.
func Gone(v contract.FDBBackupView) bool {
	return !v.Found || (v.BeingDeleted && !v.Held && !v.DeleteWanted)
}

// Containers names the containers that hold data of a backup, sorted. One that is only planned holds none: what is there is
// somebody else's, whom nobody may keep from deleting it by naming its place.
func Containers(v contract.FDBBackupView) []string {
	return containersOf(v, func(entry contract.FDBBackup) bool { return !IsPlan(entry) })
}

// Mentioned names the containers of all entries of status.backups, sorted.
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

// NewContainer is the container of the backup that is about to be started, and whether nobody else can know it, because its path
// tells the second of the start. It is empty if none is planned.
func NewContainer(v contract.FDBBackupView) (name string, fresh bool) {
	plan, planned := Situation{View: v}.planned()
	if !planned {
		return "", false
	}
	at, format := time.Date(2031, time.November, 23, 14, 37, 58, 0, time.UTC), v.Desired.TimestampFormat
	return fdb.ContainerOf(plan.URL), at.Format(format) != at.Add(time.Second).Format(format) &&
		at.Format(format) != at.AddDate(0, 0, 1).Format(format)
}

// LeftBehind are the URLs at which data of a backup stay if nobody deletes them.
func LeftBehind(v contract.FDBBackupView) []string {
	var urls []string
	for _, entry := range v.Backups {
		if !IsPlan(entry) {
			urls = append(urls, entry.URL)
		}
	}
	return urls
}

// Later is the result to remember of two: that of the later turn. What the other has deleted is gone, too.
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

// Pending is the result of a turn that the status does not tell yet; nil if there is none. One that is told again is none.
func Pending(v contract.FDBBackupView, m contract.FDBMemory) *contract.FDBExpiryResult {
	if m.Result == nil || (v.Expiry != nil && m.Result.Turn <= v.Expiry.Turn) {
		return nil
	}
	return m.Result
}

// judgeExpiry: the last turn has failed, and not because of what else is wrong.
func (s Situation) judgeExpiry() *contract.FDBCondition {
	last := s.View.Expiry
	if result := Pending(s.View, s.Memory); result != nil {
		last = &contract.FDBExpiryView{Reason: result.Reason, Message: result.Message}
	}
	if !s.View.Policy || last == nil || last.Reason != fdbv1alpha1.ExpiryFailed {
		return nil
	}
	return condition(fdbv1alpha1.ConditionIncorrectBackupState, fdbv1alpha1.ReasonExpiryFailing,
		"old data could not be expired, which is tried again in the backup's next turn: %s", fdb.Bound(last.Message, MaxMessage/2))
}

// afterTurn brings an entry of status.backups up to what a turn has told of it, and reports whether its data are gone.
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

// Cleared says how an object goes whose data were to be deleted, given what its turn has told.
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

// NothingToDelete says that an object goes that has no data.
func NothingToDelete() contract.FDBRelease {
	return contract.FDBRelease{Data: true, Reason: fdbv1alpha1.ExpiryDeleted, Note: "there are no data of the backup to delete"}
}

// eventDataLeft is the reason of the Event that tells of data that stay with a namespace that goes.
const eventDataLeft = "DataLeft"

// LeaveData says that an object goes whose namespace is being deleted: no pod can be made there any more, so its data stay.
func LeaveData(v contract.FDBBackupView) contract.FDBRelease {
	urls := LeftBehind(v)
	if len(urls) == 0 {
		return NothingToDelete()
	}
	return contract.FDBRelease{
		Data: true, Reason: eventDataLeft, Warning: true, Left: urls,
		Note: fdb.Bound(fmt.Sprintf(
			"the namespace is being deleted, in which no pod can delete the data: they stay at %s; delete them by "+
				"hand (fdbbackup delete -d URL)", strings.Join(urls, ", ")), MaxMessage),
	}
}
