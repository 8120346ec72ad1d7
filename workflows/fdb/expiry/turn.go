package expiry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// PodOver reports whether nothing more can come from a turn's pod.
func PodOver(pod contract.FDBPodView) bool {
	return !pod.Found || pod.Result != nil || pod.Ended || pod.Failed != "" || pod.Refused || pod.Terminating
}

// PodFailure returns why a pod that is over, or has reached its limit, has left no result; empty if it has left one.
func PodFailure(pod contract.FDBPodView, limit time.Duration) string {
	switch {
	case pod.Result != nil:
		return ""
	case pod.Refused:
		return "the pod cannot be created: " + pod.Failed
	case pod.Failed != "":
		return fmt.Sprintf("pod %s has left no result: %s", pod.Name, pod.Failed)
	case !pod.Found:
		return fmt.Sprintf("pod %s was deleted before it left a result", pod.Name)
	case pod.Terminating:
		return fmt.Sprintf("pod %s is being deleted by somebody else and has left no result", pod.Name)
	case pod.Ended:
		return fmt.Sprintf("pod %s has ended without a result", pod.Name)
	case pod.Waiting != "":
		return fmt.Sprintf("the pod was stopped at its limit of %s: it waited for %s", limit, pod.Waiting)
	}
	return fmt.Sprintf("the pod was stopped at its limit of %s", limit)
}

// TurnEnded returns the result of a turn of which only the outcome is known, with the reason that the status shows for it.
func TurnEnded(job contract.FDBJob, outcome contract.FDBTurnOutcome, message string) contract.FDBExpiryResult {
	reason := fdbv1alpha1.ExpiryFailed
	switch {
	case outcome == contract.FDBTurnNotYet:
		reason = fdbv1alpha1.ExpiryWaiting
	case outcome == contract.FDBTurnFailed:
	case job == contract.FDBJobDelete:
		reason = fdbv1alpha1.ExpiryDeleted
	case outcome == contract.FDBTurnRefused:
		reason = fdbv1alpha1.ExpiryUnsafe
	case outcome == contract.FDBTurnDone:
		reason = fdbv1alpha1.ExpiryExpired
	case outcome == contract.FDBTurnNothing, outcome == contract.FDBTurnGone:
		reason = fdbv1alpha1.ExpiryNothing
	}
	return contract.FDBExpiryResult{Job: job, Outcome: outcome, Reason: reason, Message: message}
}

// TurnExpired returns the result of a turn whose pod was to expire a container and has left that result.
func TurnExpired(expire contract.FDBExpire, pod contract.FDBPodResult) contract.FDBExpiryResult {
	var ended contract.FDBExpiryResult
	switch trouble := pod.Failure; {
	case trouble == nil:
		ended = expired(expire, pod)
	case trouble.Class == contract.FDBClassUnsafe:
		ended = kept(expire, pod)
	case trouble.Class == contract.FDBClassMissing:
		ended = TurnEnded(contract.FDBJobExpire, contract.FDBTurnNothing, "there are no data yet at "+expire.URL)
	case trouble.Class == contract.FDBClassLocked, trouble.Class == contract.FDBClassTimeout && pod.Before == nil:
		ended = TurnEnded(contract.FDBJobExpire, contract.FDBTurnNotYet, // nothing was expired yet
			"nothing is expired while the database or the store does not answer: "+trouble.Message)
	default:
		ended = TurnEnded(contract.FDBJobExpire, contract.FDBTurnFailed, trouble.Message)
	}
	ended.Container = remains(pod)
	return ended
}

// remains returns the container as it was last described.
func remains(pod contract.FDBPodResult) *contract.FDBContainer {
	if pod.After != nil {
		return pod.After
	}
	return pod.Before
}

func expired(expire contract.FDBExpire, pod contract.FDBPodResult) contract.FDBExpiryResult {
	end := func(outcome contract.FDBTurnOutcome, format string, args ...any) contract.FDBExpiryResult {
		return TurnEnded(contract.FDBJobExpire, outcome, fmt.Sprintf(format, args...))
	}
	cutoff, before, after := details.Stamp(expire.Before), pod.Before, pod.After
	switch {
	case before == nil && after == nil:
		return end(contract.FDBTurnFailed, "the pod has left no description of %s", expire.URL)
	case after == nil && before.Missing:
		return end(contract.FDBTurnNothing, "there are no data yet at %s", expire.URL)
	case after == nil:
		return end(contract.FDBTurnNothing, "there is nothing older than %s: %s", cutoff, rangeText(before))
	case after.Failure != nil:
		return end(contract.FDBTurnDone, "data older than %s were expired; what is left could not be read: %s",
			cutoff, after.Failure.Message)
	}
	oldest, left := after.Oldest, ""
	if oldest != nil && oldest.Time != 0 && oldest.Time < expire.Before {
		left = ". FoundationDB deletes whole files only and moves the limit back to where one begins, so older data are left"
	}
	switch {
	case !samePoint(before, after):
		return end(contract.FDBTurnDone, "data older than %s were expired: %s%s", cutoff, rangeText(after), left)
	case left != "":
		return end(contract.FDBTurnNothing, "nothing was expired up to %s: %s%s", cutoff, rangeText(after), left)
	}
	return end(contract.FDBTurnNothing, "there is nothing older than %s: %s", cutoff, rangeText(after))
}

// kept is a normal result: FoundationDB keeps what is needed so that the policy's minimum stays restorable.
func kept(expire contract.FDBExpire, pod contract.FDBPodResult) contract.FDBExpiryResult {
	if expire.Stopped {
		ended := TurnEnded(contract.FDBJobExpire, contract.FDBTurnRefused,
			"the backup is stopped; its last restorable snapshot outlives maxRetention until the object is deleted or a new backup "+
				"is started")
		ended.Reason = fdbv1alpha1.ExpiryLastSnapshotKept
		return ended
	}
	since := ""
	if pod.Before != nil && pod.Before.Oldest != nil {
		since = " since " + fdbbackup.PointText(pod.Before.Oldest)
	}
	needed := "a new snapshot is needed that begins after " + details.Stamp(expire.Before)
	if expire.RestorableAfter != 0 {
		needed += " and ends before " + details.Stamp(expire.RestorableAfter) + "; from then on every moment must stay restorable"
	}
	return TurnEnded(contract.FDBJobExpire, contract.FDBTurnRefused, fmt.Sprintf(
		"the data of %s%s must stay, or too little could be restored: %s. The next turn retries it",
		expire.URL, since, needed))
}

// DescribesOnly reports whether a result describes no other container than the one to expire: a pod that was found may have been
// created for one that is not the newest any more.
func DescribesOnly(expire contract.FDBExpire, pod contract.FDBPodResult) bool {
	return !slices.ContainsFunc([]*contract.FDBContainer{pod.Before, pod.After}, func(described *contract.FDBContainer) bool {
		return described != nil && fdb.ContainerOf(described.URL) != expire.Container
	})
}

// HoldsMinimum reports whether, after that result, the container alone holds all that the policy wants to be restorable: older
// containers are not needed any more.
func HoldsMinimum(expire contract.FDBExpire, pod contract.FDBPodResult) bool {
	if !DescribesOnly(expire, pod) || (pod.Failure != nil && pod.Failure.Class != contract.FDBClassUnsafe) {
		return false
	}
	container := remains(pod)
	if container == nil || container.Failure != nil || container.Missing || !container.Restorable || container.Oldest == nil {
		return false
	}
	since := container.Oldest.Time
	return expire.RestorableAfter == 0 || (since != 0 && since <= expire.RestorableAfter)
}

// WithOlder adds to the result of an expire that older containers were deleted.
func WithOlder(ended contract.FDBExpiryResult, deleted []string) contract.FDBExpiryResult {
	if len(deleted) == 0 {
		return ended
	}
	ended.Deleted = deleted
	ended.Message += fmt.Sprintf("; deleted, as the newer data hold all that must be restorable: %s", strings.Join(deleted, ", "))
	if ended.Outcome == contract.FDBTurnNothing {
		ended.Outcome, ended.Reason = contract.FDBTurnDone, fdbv1alpha1.ExpiryExpired
	}
	return ended
}

// DeletedOf returns the URLs of the places whose data are gone, and of those whose data are not, as a pod has reported them.
func DeletedOf(places []contract.FDBPlace, pod *contract.FDBPodResult) (deleted, left []string) {
	for _, place := range places {
		gone := pod != nil && slices.ContainsFunc(pod.Deleted, func(url string) bool {
			return url == place.URL || (place.Container != "" && fdb.ContainerOf(url) == place.Container)
		})
		if gone {
			deleted = append(deleted, place.URL)
		} else {
			left = append(left, place.URL)
		}
	}
	return deleted, left
}

// MaxDelete is how many containers a pod deletes at most: its report must fit into a termination message.
const MaxDelete = 100

// DeletedSome returns the result of a turn that has deleted as much as one turn may: there is more.
func DeletedSome(deleted []string) contract.FDBExpiryResult {
	ended := TurnEnded(contract.FDBJobDelete, contract.FDBTurnNotYet, fmt.Sprintf("%d containers are deleted, as many as one "+
		"turn deletes; the next turn deletes the others", len(deleted)))
	ended.Deleted = deleted
	return ended
}

// TurnDeleted returns the result of a turn that was to delete all data of a backup: what is gone, what is left, what stays
// because others use it, and the others' names as far as the tenant may know them.
func TurnDeleted(deleted, left, kept, others []string, trouble string) contract.FDBExpiryResult {
	ended := TurnEnded(contract.FDBJobDelete, contract.FDBTurnDone, "")
	switch {
	case len(left) > 0 && trouble == "":
		trouble = "the pod has not reported on it"
		fallthrough
	case len(left) > 0:
		ended = TurnEnded(contract.FDBJobDelete, contract.FDBTurnFailed,
			fmt.Sprintf("not deleted: %s: %s", strings.Join(left, ", "), trouble))
	case len(kept) > 0:
		ended.Reason = fdbv1alpha1.ExpiryKept
		ended.Message = fmt.Sprintf("the data at %s stay, because they are used by %s too; they are not deleted with this object",
			strings.Join(kept, ", "), strings.Join(others, ", "))
		if len(deleted) > 0 {
			ended.Message += "; deleted: " + strings.Join(deleted, ", ")
		}
	case len(deleted) > 0:
		ended.Message = "deleted: " + strings.Join(deleted, ", ")
	default:
		ended = TurnEnded(contract.FDBJobDelete, contract.FDBTurnNothing, "there are no data to delete")
	}
	ended.Deleted, ended.Kept = deleted, kept
	return ended
}

// rangeText describes what can be restored from a container.
func rangeText(container *contract.FDBContainer) string {
	switch {
	case container.Failure != nil:
		return "what can be restored is not known: " + container.Failure.Message
	case !container.Restorable || container.Oldest == nil:
		return "nothing can be restored yet"
	case container.Latest == nil:
		return "restorable from " + fdbbackup.PointText(container.Oldest)
	}
	return fmt.Sprintf("restorable from %s to %s", fdbbackup.PointText(container.Oldest), fdbbackup.PointText(container.Latest))
}

// samePoint reports whether both containers are restorable from the same version on, or neither is restorable.
func samePoint(a, b *contract.FDBContainer) bool {
	if a == nil || a.Oldest == nil || b.Oldest == nil {
		return a != nil && a.Oldest == b.Oldest
	}
	return a.Oldest.Version == b.Oldest.Version
}
