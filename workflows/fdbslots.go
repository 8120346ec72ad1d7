package workflows

import (
	"slices"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// fdbSlots say who has a slot for a first snapshot and who waits for one. Times are passed in.
type fdbSlots struct {
	// waiting are in the order of their asking; order says who is next.
	holders, waiting []contract.FDBHolder
	rounds           fdbRounds
	// again are the holders that have asked again and are told again.
	again []string
}

func fdbHolderIn(list []contract.FDBHolder, id string) int {
	return slices.IndexFunc(list, func(h contract.FDBHolder) bool { return h.WorkflowID == id })
}

func withoutFDBHolder(list []contract.FDBHolder, id string) []contract.FDBHolder {
	return slices.DeleteFunc(list, func(h contract.FDBHolder) bool { return h.WorkflowID == id })
}

// take notes what a backup wants. Who asks, runs.
func (s *fdbSlots) take(wish contract.FDBWish, asker contract.FDBHolder) {
	id := asker.WorkflowID
	holds, waits := fdbHolderIn(s.holders, id), fdbHolderIn(s.waiting, id)
	if wish == contract.FDBWishRelease {
		s.remove(id)
		return
	}
	switch {
	case holds >= 0:
		s.holders[holds].ClosedSince = 0
		if wish == contract.FDBWishSlot && !slices.Contains(s.again, id) {
			s.again = append(s.again, id)
		}
	case wish == contract.FDBWishCount:
		s.waiting = withoutFDBHolder(s.waiting, id)
		s.holders = append(s.holders, asker)
	case waits < 0:
		s.waiting = append(s.waiting, asker)
		s.rounds.know(s.lines())
	default:
		s.waiting[waits].Namespace = asker.Namespace // it may have asked before that was told
	}
}

// remove forgets a backup.
func (s *fdbSlots) remove(id string) {
	s.holders, s.waiting = withoutFDBHolder(s.holders, id), withoutFDBHolder(s.waiting, id)
	s.again = slices.DeleteFunc(s.again, func(again string) bool { return again == id })
}

// line is whose turns go round with those of others.
func (s *fdbSlots) line(holder contract.FDBHolder) string {
	if s.rounds.single {
		return ""
	}
	return holder.Namespace
}

func (s *fdbSlots) lines() []string {
	var lines []string
	for _, holder := range s.waiting {
		lines = append(lines, s.line(holder))
	}
	return lines
}

// order is the order of the grants: by rounds of the namespaces.
func (s *fdbSlots) order() []contract.FDBHolder {
	return inFDBRounds(s.rounds.among(s.lines()), s.waiting, s.line)
}

// grant gives a free slot to the next, and returns who it is.
func (s *fdbSlots) grant(limit int, now int64) (next contract.FDBHolder, granted bool) {
	if len(s.waiting) == 0 || len(s.holders) >= limit {
		return contract.FDBHolder{}, false
	}
	next = s.order()[0]
	s.rounds.served(s.line(next), s.lines())
	s.waiting = withoutFDBHolder(s.waiting, next.WorkflowID)
	next.Since = now
	s.holders = append(s.holders, next)
	return next, true
}

// requeue takes a slot back from one that could not be told of it; it waits anew, so that it does not hold up the others.
func (s *fdbSlots) requeue(holder contract.FDBHolder, now int64) {
	s.remove(holder.WorkflowID)
	holder.Since = now
	s.waiting = append(s.waiting, holder)
}

// closed notes that a workflow does not run. What waits is forgotten: it has started nothing. What holds keeps its slot for
// contract.FDBSlotGrace: a start command may be on its way.
func (s *fdbSlots) closed(id string, now int64) {
	s.waiting = withoutFDBHolder(s.waiting, id)
	at := fdbHolderIn(s.holders, id)
	if at < 0 {
		return
	}
	switch since := s.holders[at].ClosedSince; {
	case since == 0:
		s.holders[at].ClosedSince = now
	case now-since >= int64(contract.FDBSlotGrace/time.Second):
		s.remove(id)
	}
}

// running notes that a workflow runs.
func (s *fdbSlots) running(id string) {
	if at := fdbHolderIn(s.holders, id); at >= 0 {
		s.holders[at].ClosedSince = 0
	}
}

// everybody returns the workflow IDs of all, holders first.
func (s *fdbSlots) everybody() []string {
	var ids []string
	for _, list := range [][]contract.FDBHolder{s.holders, s.waiting} {
		for _, holder := range list {
			ids = append(ids, holder.WorkflowID)
		}
	}
	return ids
}
