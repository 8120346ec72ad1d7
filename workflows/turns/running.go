package turns

import "slices"

// Hold notes a turn that runs already, no matter who began it, even above the limit. Of several turns of a member the last
// counts. Where a member has one turn, one that has left or ended during the listing has none any more.
func (q *Queue[K]) Hold(turn Turn[K]) {
	if q.Rest == nil && q.noted[turn.Key] && q.Member(turn.Key) == nil {
		return
	}
	known := q.Turn(turn.Key)
	q.begun = append(q.begun, turn)
	switch {
	case known == nil:
		q.Turns = append(q.Turns, turn)
	case turn.Began <= known.Began:
		known.Closing = known.Closing && turn.Closing
		return
	default:
		known.Closing = known.Closing && turn.Closing
		known.Began, known.Job = turn.Began, turn.Job
	}
	if q.Rest == nil {
		q.Leave(turn.Key)
		return
	}
	q.rotate(turn, turn.Began)
}

// Requeue ends a turn that could not be given: its member waits again, as the last of its namespace, and not before notBefore.
func (q *Queue[K]) Requeue(turn Turn[K], now, notBefore int64) {
	q.End(turn.Key)
	member := turn.Member
	member.Since, member.NotBefore = now, notBefore
	q.Members = append(q.Members, member)
}

// Return ends a turn that was not used: its member waits again at its place, before those that came after it.
func (q *Queue[K]) Return(turn Turn[K]) {
	q.End(turn.Key)
	q.insert([]Member[K]{turn.Member})
}

// Again marks a running turn to be given again: its member does not know that it has it, or its workflow is lost.
func (q *Queue[K]) Again(key K) {
	at := q.turn(key)
	if at < 0 || slices.ContainsFunc(q.again, func(t Turn[K]) bool { return t.Key == key }) {
		return
	}
	q.again = append(q.again, q.Turns[at])
}

// MarkClosed notes that the workflow of a turn does not run, and returns for how many seconds that is known; -1 if there is no
// such turn.
func (q *Queue[K]) MarkClosed(key K, now int64) int64 {
	turn := q.Turn(key)
	if turn == nil {
		return -1
	}
	if turn.ClosedSince == 0 {
		turn.ClosedSince = now
	}
	return now - turn.ClosedSince
}

// MarkRunning notes that the workflow of a turn runs.
func (q *Queue[K]) MarkRunning(key K) {
	if turn := q.Turn(key); turn != nil {
		turn.ClosedSince = 0
	}
}

// Revive marks a turn to be given again whose workflow is lost. A closing turn needs a free place for that, since it may do more
// than close when it is given again.
func (q *Queue[K]) Revive(key K) {
	turn := q.Turn(key)
	if turn == nil || (turn.Closing && q.count(func(t Turn[K]) bool { return !t.Closing }) >= q.Limit) {
		return
	}
	turn.Closing, turn.ClosedSince = false, 0
	q.Again(key)
}

// doubtful reports whether the workflow of some turn was found not to run.
func (q *Queue[K]) doubtful() bool {
	return slices.ContainsFunc(q.Turns, func(t Turn[K]) bool { return t.ClosedSince != 0 })
}
