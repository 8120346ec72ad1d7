package expiryqueue

import (
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/turns"
)

// turnStates are the turns of expirations and deletions. It applies requests of backups and reports of turns. Times are in Unix
// seconds, and arguments.
type turnStates struct {
	turns.Queue[contract.ObjectRef]
	pace pace
}

// pace is what the flags, or operators, say about turns. It goes through the history.
type pace struct {
	Limit int
	// Retry and Min are --fdb-expiry-retry-interval and --fdb-expiry-min-interval in seconds.
	Retry, Min int64
}

// rest returns how long, in seconds, a backup waits at least after the begin of a turn.
func (p pace) rest(job contract.FDBJob) int64 {
	if job == contract.FDBJobDelete {
		return p.Retry
	}
	return p.Min
}

// at sets the pace.
func (s *turnStates) at(pace pace) {
	s.pace, s.Limit = pace, pace.Limit
	s.Rest = func(job string) int64 { return pace.rest(contract.FDBJob(job)) }
}

func fdbMemberOf(entry contract.FDBQueueEntry) turns.Member[contract.ObjectRef] {
	return turns.Member[contract.ObjectRef]{
		Key: entry.Ref, Namespace: entry.Ref.Namespace, Lane: entry.Job.Lane(), Job: string(entry.Job), First: entry.First,
		NotBefore: entry.NotBefore, Last: entry.Last, Outcome: string(entry.Outcome),
	}
}

func fdbEntryOf(member turns.Member[contract.ObjectRef]) contract.FDBQueueEntry {
	return contract.FDBQueueEntry{
		Ref: member.Key, Job: contract.FDBJob(member.Job), First: member.First,
		NotBefore: member.NotBefore, Last: member.Last, Outcome: contract.FDBTurnOutcome(member.Outcome),
	}
}

func fdbTurnOf(turn contract.FDBTurn) turns.Turn[contract.ObjectRef] {
	return turns.Turn[contract.ObjectRef]{
		Member: fdbMemberOf(contract.FDBQueueEntry{Ref: turn.Ref, Job: turn.Job}),
		Began:  turn.Turn, Closing: turn.Closing, ClosedSince: turn.ClosedSince,
	}
}

// running returns the turns that run.
func (s *turnStates) running() []contract.FDBTurn {
	return turns.Each(s.Turns, func(turn turns.Turn[contract.ObjectRef]) contract.FDBTurn {
		return contract.FDBTurn{
			Ref: turn.Key, Job: contract.FDBJob(turn.Job), Turn: turn.Began, Closing: turn.Closing, ClosedSince: turn.ClosedSince,
		}
	})
}

// request notes what a backup wants. If it has an entry, that keeps its place. A running turn is not affected.
func (s *turnStates) request(ref contract.ObjectRef, job contract.FDBJob, now int64) {
	entry := s.Member(ref)
	switch {
	case job == contract.FDBJobNone:
		s.Leave(ref)
	case entry == nil:
		s.Add(now, fdbMemberOf(contract.FDBQueueEntry{Ref: ref, Job: job}))
	case entry.Job != string(job):
		entry.Job, entry.Lane = string(job), job.Lane()
		if job == contract.FDBJobDelete {
			entry.NotBefore = 0 // a tenant waits until the object is gone
		}
	}
}

// report notes how far a turn is. A report of another turn than the known one is old.
func (s *turnStates) report(report contract.FDBTurnReport, now int64) {
	turn := s.Turn(report.Ref)
	if turn == nil || turn.Began != report.Turn {
		return
	}
	if !report.Ended {
		turn.Closing, turn.ClosedSince = report.Closing, 0
		return
	}
	job := turn.Job
	deletion := job == string(contract.FDBJobDelete)
	s.End(report.Ref)
	entry := s.Member(report.Ref)
	switch {
	case report.Outcome == contract.FDBTurnGone:
		s.Leave(report.Ref)
		return
	case entry == nil && deletion && (report.Outcome == contract.FDBTurnDone || report.Outcome == contract.FDBTurnNothing):
		s.Leave(report.Ref) // a list of objects from before does not bring it back
		return
	case entry == nil:
		return
	}
	entry.Outcome = string(report.Outcome)
	if entry.Job != job {
		return // it was a turn for another job than the one wanted now
	}
	switch {
	case report.Outcome == contract.FDBTurnNotYet, deletion && report.Outcome == contract.FDBTurnFailed:
		entry.NotBefore = now + s.pace.Retry
	case deletion && (report.Outcome == contract.FDBTurnDone || report.Outcome == contract.FDBTurnNothing):
		s.Leave(report.Ref) // the object will be gone; if not, its workflow asks again
	}
}

// wish is what an operator wants of a backup: to put it first, or to remove it.
type wish struct {
	name  contract.FDBQueueName
	first bool // false: remove it
	met   bool // it was in the queue or in the objects
}

// grant fulfils a wish if the backup waits in the queue.
func (s *turnStates) grant(wish *wish) {
	is := called(wish.name)
	keys := s.Waiting(is)
	if wish.first {
		s.PutFirst(is)
	} else {
		s.Remove(keys...)
	}
	wish.met = wish.met || len(keys) > 0
}

// refill adds the entries that were found in the objects, and fulfils the wishes.
func (s *turnStates) refill(found contract.FDBExpiriesFound, wishes []*wish, now int64) {
	for _, wish := range wishes {
		s.grant(wish) // the backup may have asked meanwhile
	}
	var members []turns.Member[contract.ObjectRef]
	for _, entry := range found.Entries {
		if entry.Job == contract.FDBJobNone {
			continue
		}
		if entry.Job == contract.FDBJobExpire && entry.Last > 0 {
			entry.NotBefore = min(entry.Last, now) + s.pace.rest(entry.Job)
		}
		for _, wish := range wishes {
			switch is := called(wish.name); {
			case !is(entry.Ref):
			case wish.first:
				entry.First, entry.NotBefore = true, 0 // so it is not cut
			default:
				s.Remove(entry.Ref)
				wish.met = true
			}
		}
		members = append(members, fdbMemberOf(entry))
	}
	if len(found.Beyond) == contract.FDBQueueLanes {
		deletions, expirations := &found.Beyond[contract.LaneDelete], &found.Beyond[contract.LaneExpire]
		deletions.NotBefore = 0 // their last turns were expirations
		if expirations.NotBefore > 0 {
			expirations.NotBefore = min(expirations.NotBefore, now) + s.pace.rest(contract.FDBJobExpire)
		}
	}
	s.Refill(now, members, found.Beyond...)
	for _, wish := range wishes {
		s.grant(wish)
	}
}

// named reports whether a backup of that name has an entry, and since when its turn runs; 0 if it does not.
func (s *turnStates) named(name contract.FDBQueueName) (waits bool, since int64) {
	is := called(name)
	for _, turn := range s.Turns {
		if is(turn.Key) {
			since = turn.Began
		}
	}
	return len(s.Waiting(is)) > 0, since
}

func called(name contract.FDBQueueName) func(contract.ObjectRef) bool {
	return func(ref contract.ObjectRef) bool { return ref.Namespace == name.Namespace && ref.Name == name.Name }
}
