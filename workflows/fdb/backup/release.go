package backup

import (
	"fmt"
	"strings"
	"time"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

// Blocker returns what keeps the backup of an object that is being deleted from being stopped; empty if nothing does.
func Blocker(s Situation, failed *Attempt) string {
	switch {
	case s.View.ClusterGone:
		return "its FoundationDBCluster is gone"
	case s.View.Owner == "":
		return "its FoundationDBCluster does not say how to reach the database"
	case s.Seen.Failure != nil:
		return s.Seen.Failure.Message
	case failed != nil && failed.Failure != nil:
		return failed.Failure.Message
	}
	return ""
}

// ReleaseDue reports whether an object that is being deleted may be released and, if its backup was not stopped, why. It is
// released when the backup has ended; when the cluster is gone, or could not be reached for limit; and at once in a namespace
// that is being deleted, which must never hang.
func ReleaseDue(s Situation, failed *Attempt, now time.Time, limit time.Duration) (due bool, abandoned string) {
	blocker := Blocker(s, failed)
	if blocker == "" {
		return s.judgeStopped() == nil, ""
	}
	since := s.Memory.UnreachableSince // 0 unless the blocker is that the database does not answer
	waited := requests.Unreachable(s.View.Owner, s.Seen.Failure) && since != 0 && now.Sub(time.Unix(since, 0)) >= limit
	if !s.View.ClusterGone && !s.View.NamespaceEnding && !waited {
		return false, ""
	}
	return true, Abandoned(s, blocker)
}

// Abandoned returns a note that a backup was not stopped: what blocked it, and what stays.
func Abandoned(s Situation, blocker string) string {
	var urls, planned []string
	for _, entry := range s.View.Backups {
		if IsPlan(entry) {
			planned = append(planned, entry.URL)
		} else if entry.State != fdb.StateAborted && entry.State != fdb.StateCompleted {
			urls = append(urls, entry.URL)
		}
	}
	left := "no data are known of"
	if len(urls) > 0 {
		left = "its data stay at " + strings.Join(urls, ", ")
		if s.View.DeleteWanted && !s.View.NamespaceEnding {
			left = "its data are deleted nevertheless, at " + strings.Join(urls, ", ")
		}
	}
	if len(planned) > 0 {
		left += "; whether one was started at " + strings.Join(planned, ", ") + " is not known: what is there stays"
	}
	return fmt.Sprintf("the backup was not stopped, because %s. If the database exists, abort the backup there (fdbbackup "+
		"abort -t %s), or its log of changes keeps growing; %s", blocker, s.View.Desired.Tag, left)
}
