package workflows

import (
	"cmp"
	"slices"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// fdbTurns say which backup has its turn in the queue of expirations and which wait for theirs, in their order. Times are Unix
// seconds and passed in.
type fdbTurns struct {
	// entries are in the order of their asking; whose turn has begun is at the end. order says whose turn is next.
	entries []contract.FDBQueueEntry
	turns   []contract.FDBTurn
	rounds  fdbRounds
	// begun are the turns that began in the second of the last: another turn of the same backup needs another number.
	begun []contract.FDBTurn
}

// fdbPace is what the flags, or people, say about turns. It goes through the history.
type fdbPace struct {
	Limit int
	// Retry and Min are --fdb-expiry-retry-interval and --fdb-expiry-min-interval in seconds.
	Retry, Min int64
}

// rest is how long a backup waits at least after the begin of a turn.
func (p fdbPace) rest(job contract.FDBJob) int64 {
	if job == contract.FDBJobDelete {
		return p.Retry
	}
	return p.Min
}

func (s *fdbTurns) entry(ref contract.ObjectRef) int {
	return slices.IndexFunc(s.entries, func(e contract.FDBQueueEntry) bool { return e.Ref == ref })
}

func (s *fdbTurns) turn(ref contract.ObjectRef) int {
	return slices.IndexFunc(s.turns, func(t contract.FDBTurn) bool { return t.Ref == ref })
}

// take notes what a backup wants. One that is there keeps its place. A turn that runs is not disturbed.
func (s *fdbTurns) take(ref contract.ObjectRef, job contract.FDBJob) {
	at := s.entry(ref)
	switch {
	case job == contract.FDBJobNone:
		s.drop(ref)
	case at < 0:
		s.entries = append(s.entries, contract.FDBQueueEntry{Ref: ref, Job: job})
		s.rounds.know(s.lines())
	case s.entries[at].Job != job:
		s.entries[at].Job = job
		if job == contract.FDBJobDelete {
			s.entries[at].NotBefore = 0 // people wait for their object to go
		}
	}
}

func (s *fdbTurns) drop(ref contract.ObjectRef) {
	s.entries = slices.DeleteFunc(s.entries, func(e contract.FDBQueueEntry) bool { return e.Ref == ref })
}

// running is how many turns count against the limit. One in termination whose workflow was found not to run is one of them:
// started again, it may make its pod anew.
func (s *fdbTurns) running() int {
	count := 0
	for _, turn := range s.turns {
		if !turn.Closing || turn.ClosedSince != 0 {
			count++
		}
	}
	return count
}

// taken is how many turns have a pod, or may.
func (s *fdbTurns) taken() int {
	count := 0
	for _, turn := range s.turns {
		if !turn.Closing {
			count++
		}
	}
	return count
}

// line is whose turns go round with those of others.
func (s *fdbTurns) line(entry contract.FDBQueueEntry) string {
	if s.rounds.single {
		return ""
	}
	return entry.Ref.Namespace
}

func (s *fdbTurns) lines() []string {
	var lines []string
	for _, entry := range s.entries {
		lines = append(lines, s.line(entry))
	}
	return lines
}

// order is the order of the turns: those that people have put first, those that are due, by rounds of the namespaces, and then
// those that are not, by their times.
func (s *fdbTurns) order(now int64) []contract.FDBQueueEntry {
	var first, due, later []contract.FDBQueueEntry
	busy := make(map[contract.ObjectRef]bool, len(s.turns))
	for _, turn := range s.turns {
		busy[turn.Ref] = true
	}
	for _, entry := range s.entries {
		switch {
		case entry.First:
			first = append(first, entry)
		case entry.NotBefore <= now && !busy[entry.Ref]:
			due = append(due, entry)
		default:
			later = append(later, entry)
		}
	}
	due = inFDBRounds(s.rounds.among(s.lines()), due, s.line)
	slices.SortStableFunc(later, func(a, b contract.FDBQueueEntry) int { return cmp.Compare(a.NotBefore, b.NotBefore) })
	return slices.Concat(first, due, later)
}

// begin gives the next turn to the first in their order that is due and has none.
func (s *fdbTurns) begin(now int64, pace fdbPace) (contract.FDBTurn, bool) {
	if s.running() >= pace.Limit {
		return contract.FDBTurn{}, false
	}
	order := s.order(now)
	at := slices.IndexFunc(order, func(e contract.FDBQueueEntry) bool { return e.NotBefore <= now && s.turn(e.Ref) < 0 })
	if at < 0 {
		return contract.FDBTurn{}, false
	}
	entry := order[at]
	turn := contract.FDBTurn{Ref: entry.Ref, Job: entry.Job, Turn: max(now, entry.Last+1)}
	s.begun = slices.DeleteFunc(s.begun, func(t contract.FDBTurn) bool { return t.Turn < now })
	for _, earlier := range s.begun {
		if earlier.Ref == turn.Ref {
			turn.Turn = max(turn.Turn, earlier.Turn+1)
		}
	}
	s.begun = append(s.begun, turn)
	s.add(turn, now, pace)
	return turn, true
}

// adopt notes a turn of which there is a pod; of several of a backup the last counts. It reports whether it was not known.
func (s *fdbTurns) adopt(turn contract.FDBTurn, pace fdbPace) bool {
	at := s.turn(turn.Ref)
	if at < 0 {
		s.add(turn, turn.Turn, pace)
		return true
	}
	known := &s.turns[at]
	known.Closing = known.Closing && turn.Closing
	if turn.Turn <= known.Turn {
		return false
	}
	known.Turn, known.Job = turn.Turn, turn.Job
	s.rotate(turn, turn.Turn, pace)
	return true
}

func (s *fdbTurns) add(turn contract.FDBTurn, since int64, pace fdbPace) {
	s.turns = append(s.turns, turn)
	s.rotate(turn, since, pace)
}

// rotate puts a backup whose turn has begun at the end, and its namespace at the end of the rounds.
func (s *fdbTurns) rotate(turn contract.FDBTurn, since int64, pace fdbPace) {
	at := s.entry(turn.Ref)
	if at < 0 {
		return
	}
	entry := s.entries[at]
	s.rounds.served(s.line(entry), s.lines())
	entry.First = false
	entry.Last = max(entry.Last, turn.Turn)
	if entry.Job == turn.Job {
		entry.NotBefore = since + pace.rest(turn.Job)
	}
	s.entries = append(slices.Delete(s.entries, at, at+1), entry)
}

// report notes how far a turn is. What is said of another turn than the one that is known is old.
func (s *fdbTurns) report(report contract.FDBTurnReport, now int64, pace fdbPace) {
	at := s.turn(report.Ref)
	if at < 0 || s.turns[at].Turn != report.Turn {
		return
	}
	if !report.Ended {
		s.turns[at].Closing, s.turns[at].ClosedSince = report.Closing, 0
		return
	}
	job := s.turns[at].Job
	s.turns = slices.Delete(s.turns, at, at+1)
	at = s.entry(report.Ref)
	if at < 0 {
		return
	}
	if report.Outcome == contract.FDBTurnGone {
		s.drop(report.Ref)
		return
	}
	entry := &s.entries[at]
	entry.Outcome = report.Outcome
	if entry.Job != job {
		return // it says nothing of what is wanted now
	}
	switch {
	case report.Outcome == contract.FDBTurnNotYet, job == contract.FDBJobDelete && report.Outcome == contract.FDBTurnFailed:
		entry.NotBefore = now + pace.Retry
	case job == contract.FDBJobDelete && (report.Outcome == contract.FDBTurnDone || report.Outcome == contract.FDBTurnNothing):
		s.drop(report.Ref) // the object goes; if it does not, its workflow asks again
	}
}

// closed notes that the workflow of a backup's turn does not run, and reports whether it has to be started again: its end may
// have been told meanwhile, and is only not read yet. One in termination needs a free place for that.
func (s *fdbTurns) closed(ref contract.ObjectRef, now int64, pace fdbPace) (contract.FDBTurn, bool) {
	at := s.turn(ref)
	if at < 0 {
		return contract.FDBTurn{}, false
	}
	turn := &s.turns[at]
	switch {
	case turn.ClosedSince == 0:
		turn.ClosedSince = now
	case now-turn.ClosedSince >= int64(fdbCensusInterval/time.Second) && (!turn.Closing || s.taken() < pace.Limit):
		turn.Closing, turn.ClosedSince = false, 0
		return *turn, true
	}
	return contract.FDBTurn{}, false
}

// runs notes that the workflow of a backup's turn runs.
func (s *fdbTurns) runs(ref contract.ObjectRef) {
	if at := s.turn(ref); at >= 0 {
		s.turns[at].ClosedSince = 0
	}
}

// doubtful reports whether the workflow of some turn was found not to run.
func (s *fdbTurns) doubtful() bool {
	return slices.ContainsFunc(s.turns, func(t contract.FDBTurn) bool { return t.ClosedSince != 0 })
}

// next is when the next turn is due; 0 if that is for a turn to end.
func (s *fdbTurns) next(limit int) int64 {
	var next int64
	if s.running() >= limit {
		return next
	}
	for _, entry := range s.entries {
		if s.turn(entry.Ref) < 0 && (next == 0 || entry.NotBefore < next) {
			next = max(entry.NotBefore, 1)
		}
	}
	return next
}

// named reports whether a backup of that name has an entry, and since when its turn runs; 0 if it does not.
func (s *fdbTurns) named(name contract.FDBQueueName) (waits bool, since int64) {
	for _, turn := range s.turns {
		if called(turn.Ref, name) {
			since = turn.Turn
		}
	}
	return slices.ContainsFunc(s.entries, func(e contract.FDBQueueEntry) bool { return called(e.Ref, name) }), since
}

// hurry puts a backup first, before all rounds, and lets it not wait.
func (s *fdbTurns) hurry(name contract.FDBQueueName) {
	var first, others []contract.FDBQueueEntry
	for _, entry := range s.entries {
		if called(entry.Ref, name) {
			entry.NotBefore, entry.First = 0, true
			first = append(first, entry)
			continue
		}
		others = append(others, entry)
	}
	s.entries = slices.Concat(first, others)
}

// forget takes a backup out of the queue.
func (s *fdbTurns) forget(name contract.FDBQueueName) {
	s.entries = slices.DeleteFunc(s.entries, func(e contract.FDBQueueEntry) bool { return called(e.Ref, name) })
}

func called(ref contract.ObjectRef, name contract.FDBQueueName) bool {
	return ref.Namespace == name.Namespace && ref.Name == name.Name
}
