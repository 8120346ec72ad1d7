package restore

import (
	"fmt"
	"time"

	"holdfast.dev/holdfast/workflows/fdb/requests"
)

// ReleaseDue reports whether an object that is being deleted may be released, with a note for the Event. A restore that runs is
// aborted first. It is released without that when the database is gone, or could not be reached for limit, and in a namespace
// that is being deleted after one attempt: that must never hang.
func ReleaseDue(s Situation, failed *Attempt, limit time.Duration) (due bool, note string) {
	restore := s.restore()
	switch {
	case Ended(s.View.State) || s.View.State == StateFinalizing || s.neverStarted():
		return true, ""
	case restore != nil && restore.State == StateCompleted:
		return true, ""
	case restore != nil && restore.State == StateAborted:
		return true, fmt.Sprintf("the restore on tag %s was aborted: the destination holds partial data", s.tag())
	case s.answered() && restore == nil && !s.inDoubt():
		return true, fmt.Sprintf("the destination does not know the restore on tag %s, which was started: it may hold partial data",
			s.tag())
	}
	blocker := AbortBlocker(s, failed)
	since := s.Memory.UnreachableSince // 0 unless the blocker is that the database does not answer
	waited := requests.Unreachable(s.View.Owner, s.Seen.Failure) && since != 0 && s.Now.Sub(time.Unix(since, 0)) >= limit
	if !s.View.ClusterGone && !changed(s.View) && !s.View.NamespaceEnding && !waited {
		return false, ""
	}
	return true, fmt.Sprintf("the restore was not aborted, because %s. If it was started and the database exists, it continues "+
		"and locks the database. To end it, abort it there (fdbrestore abort -t %s), which leaves partial data", blocker, s.tag())
}

// tag is the restore's name in the destination.
func (s Situation) tag() string {
	if s.View.Plan == nil {
		return s.View.Tag
	}
	return s.View.Plan.Tag
}

// AbortBlocker returns what keeps the restore of an object that is being deleted from being aborted.
func AbortBlocker(s Situation, failed *Attempt) string {
	switch {
	case s.View.ClusterGone:
		return "its FoundationDBCluster is gone"
	case changed(s.View):
		return "its FoundationDBCluster is now another database"
	case s.View.Owner == "":
		return "its FoundationDBCluster does not say how to reach the database"
	case s.Seen.Failure != nil:
		return s.Seen.Failure.Message
	case failed != nil && failed.Failure != nil:
		return failed.Failure.Message
	case s.inDoubt():
		return "it is not known yet whether its start takes effect"
	}
	return "it has not ended yet"
}
