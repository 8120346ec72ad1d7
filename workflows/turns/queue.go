package turns

import (
	"slices"

	"holdfast.dev/holdfast/workflows/contract"
)

// Member is a workflow or an object that waits for a turn, or for its next one. Times are in Unix seconds.
type Member[K comparable] struct {
	// Key identifies it.
	Key K `json:"key"`
	// Namespace is where it belongs: turns go round the namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Lane is the lane in which it waits; 0 is the highest.
	Lane int `json:"lane,omitempty"`
	// Job says what its turn does, if turns do different things.
	Job string `json:"job,omitempty"`
	// First: an operator has put it first. It has its next turn before all others.
	First bool `json:"first,omitempty"`
	// Created orders the members of a namespace; members with the same value are in the order of their requests.
	Created int64 `json:"created,omitempty"`
	// Since is when it asked.
	Since int64 `json:"since,omitempty"`
	// NotBefore is the earliest begin of its next turn.
	NotBefore int64 `json:"notBefore,omitempty"`
	// Returned is how often a turn of it came back unused.
	Returned int `json:"returned,omitempty"`
	// Last is when its last turn began, and Outcome how that ended; empty before the first.
	Last    int64  `json:"last,omitempty"`
	Outcome string `json:"outcome,omitempty"`
}

// Turn is a turn that runs.
type Turn[K comparable] struct {
	// Member is the one that has the turn, as it was when the turn began.
	Member[K]
	// Began is when the turn began. No two turns of a member have the same value.
	Began int64 `json:"began"`
	// Closing: what is left of the turn does not count against the limit, but blocks the next turn of its member.
	Closing bool `json:"closing,omitempty"`
	// ClosedSince is when its workflow was first found not to run; 0 if it runs.
	ClosedSince int64 `json:"closedSince,omitempty"`
}

// Queue decides who has a turn, and who is next. Times are in Unix seconds. The fields are for handing over to the next run; to
// change members and turns, use Member and Turn.
type Queue[K comparable] struct {
	// Members are in the order of their requests. When its turn begins, a member goes to the end, or leaves. Order has the next
	// turns.
	Members []Member[K]
	Turns   []Turn[K]
	Lanes   []Lane
	// Limit is how many turns may run at a time.
	Limit int
	// Weights are how many turns namespaces have in a round; namespaces that it lacks have 1.
	Weights map[string]int
	// Alone: a namespace has no second turn at a time while another namespace waits that has none.
	Alone bool
	// Rest is how long, in seconds, a member waits at least from the begin of a turn to the next. If nil, a member has one turn, and
	// asks for another.
	Rest func(job string) int64
	// Most is how many members each lane carries at most; lanes that it lacks carry all. The others are beyond: Lanes have their
	// namespaces, and Beyond how many they are and when one may be due.
	Most   []int
	Beyond contract.Beyond
	// Pause is the least time between two refills, in seconds; refillPause if 0.
	Pause int64

	// begun are the turns that began not long ago: the next turn of their member needs another number, and its rest.
	begun []Turn[K]
	// full is how many turns of each lane came before those of members beyond after the last refill, and refilled when that was.
	full     []int
	refilled int64
	// removed are the members that operators have removed: they stay out until they ask again.
	removed []K
	// noted are the members that have asked or left during the listing, or nil: what the list says of them is older. late are
	// members that wait and are not carried, and that the list may lack.
	noted map[K]bool
	late  []Member[K]
	// again are the turns that are to be given again.
	again []Turn[K]
}

func (q *Queue[K]) member(key K) int {
	return slices.IndexFunc(q.Members, func(m Member[K]) bool { return m.Key == key })
}

func (q *Queue[K]) turn(key K) int {
	return slices.IndexFunc(q.Turns, func(t Turn[K]) bool { return t.Key == key })
}

// Member returns a waiting member, or nil. The pointer is valid until the queue changes.
func (q *Queue[K]) Member(key K) *Member[K] {
	if at := q.member(key); at >= 0 {
		return &q.Members[at]
	}
	return nil
}

// Turn returns a member's running turn, or nil. The pointer is valid until the queue changes.
func (q *Queue[K]) Turn(key K) *Turn[K] {
	if at := q.turn(key); at >= 0 {
		return &q.Turns[at]
	}
	return nil
}

// Add adds members that ask and are not there yet. Each comes last in its namespace, but before members created later. A member
// that would come after one beyond is left to its object.
func (q *Queue[K]) Add(now int64, members ...Member[K]) {
	var admitted []Member[K]
	for _, member := range members {
		q.noteMessage(member.Key)
		q.removed = slices.DeleteFunc(q.removed, func(key K) bool { return key == member.Key })
		if q.admits(member) {
			admitted = append(admitted, member)
			continue
		}
		q.Beyond.NotBefore = min(q.Beyond.NotBefore, now+newcomerPause)
		q.postpone(member)
	}
	q.insert(admitted)
}

// Leave drops a waiting member. Its running turn is not affected.
func (q *Queue[K]) Leave(key K) {
	q.noteMessage(key)
	q.Members = slices.DeleteFunc(q.Members, func(m Member[K]) bool { return m.Key == key })
}

// Remove drops waiting members until they ask again, even if a list has them. Of many it remembers the last.
func (q *Queue[K]) Remove(keys ...K) {
	for _, key := range keys {
		q.Leave(key)
		q.removed = slices.DeleteFunc(q.removed, func(removed K) bool { return removed == key })
		q.removed = append(q.removed, key)
	}
	q.removed = last(q.removed, contract.MaxNoted)
}

// Waiting returns the keys of the waiting members that match.
func (q *Queue[K]) Waiting(are func(K) bool) (keys []K) {
	for _, member := range slices.Concat(q.Members, q.late) {
		if are(member.Key) {
			keys = append(keys, member.Key)
		}
	}
	return keys
}

// End notes that a turn has ended.
func (q *Queue[K]) End(key K) {
	if q.Rest == nil { // it waits no more
		q.noteMessage(key)
	}
	q.Turns = slices.DeleteFunc(q.Turns, func(t Turn[K]) bool { return t.Key == key })
}

// Empty reports whether no member waits and no turn runs.
func (q *Queue[K]) Empty() bool {
	return len(q.Members)+len(q.Turns) == 0 && !q.hasBeyond()
}

// Running returns how many turns count against the limit. A closing turn whose workflow was found not to run counts: given again,
// it may do more than close.
func (q *Queue[K]) Running() int {
	return q.count(func(t Turn[K]) bool { return !t.Closing || t.ClosedSince != 0 })
}

func (q *Queue[K]) count(is func(Turn[K]) bool) (count int) {
	for _, turn := range q.Turns {
		if is(turn) {
			count++
		}
	}
	return count
}

// Begin gives the next turn, if the limit allows one and a member is due.
func (q *Queue[K]) Begin(now int64) (Turn[K], bool) {
	if q.Running() >= q.Limit {
		return Turn[K]{}, false
	}
	q.settle()
	line := q.line(now, q.Lanes)
	member, is := line.next()
	if !is {
		return Turn[K]{}, false
	}
	for i, lane := range line.lanes {
		q.lane(i).Passed = lane.Passed
	}
	turn := Turn[K]{Member: member, Began: q.number(member, now)}
	q.Turns = append(q.Turns, turn)
	q.rotate(turn, now)
	return turn, true
}

// number returns the value of Began of a turn that begins now: the time, but later than all earlier turns of the member.
func (q *Queue[K]) number(member Member[K], now int64) int64 {
	number := max(now, member.Last+1)
	q.forgetBegun(now)
	for _, earlier := range q.begun {
		if earlier.Key == member.Key {
			number = max(number, earlier.Began+1)
		}
	}
	q.begun = append(q.begun, Turn[K]{Member: member, Began: number})
	return number
}

// forgetBegun drops the turns that began so long ago that neither their number nor their member's rest matters.
func (q *Queue[K]) forgetBegun(now int64) {
	q.begun = slices.DeleteFunc(q.begun, func(t Turn[K]) bool { return t.Began+q.rest(t.Job) < now })
}

func (q *Queue[K]) rest(job string) int64 {
	if q.Rest == nil {
		return 0
	}
	return q.Rest(job)
}

// rotate moves the member of a turn that has begun to the end, or drops it, and moves its namespace in the round.
func (q *Queue[K]) rotate(turn Turn[K], since int64) {
	at := q.member(turn.Key)
	if at < 0 {
		return
	}
	member := q.Members[at]
	lane := q.lane(member.Lane)
	*lane = lane.settled(q.lines(member.Lane))
	lane.serve(member.Namespace, q.weight(member.Namespace))
	q.Members = slices.Delete(q.Members, at, at+1)
	rested := since + q.rest(turn.Job)
	if q.Rest == nil {
		return
	}
	member.First = false
	member.Last = max(member.Last, turn.Began)
	if member.Job == turn.Job {
		member.NotBefore = rested
	}
	if slices.Contains(lane.More, member.Namespace) { // members beyond come before it
		q.isBeyond(1, member.NotBefore)
		q.postpone(member)
		return
	}
	q.Members = append(q.Members, member)
}

// Next returns when the next turn is due; 0 if a turn has to end first, or a member to ask.
func (q *Queue[K]) Next() int64 {
	var next int64
	if q.Running() >= q.Limit {
		return next
	}
	busy := q.busy()
	for _, member := range q.Members {
		if !busy[member.Key] && (next == 0 || member.NotBefore < next) {
			next = max(member.NotBefore, 1)
		}
	}
	return next
}

func (q *Queue[K]) busy() map[K]bool {
	busy := make(map[K]bool, len(q.Turns))
	for _, turn := range q.Turns {
		busy[turn.Key] = true
	}
	return busy
}

// PutFirst puts the members that match before all others, and makes them due; it reports whether there are any. The member that
// was put first last is the first of all.
func (q *Queue[K]) PutFirst(are func(K) bool) bool {
	var first, others []Member[K]
	for _, member := range slices.Concat(q.Members, q.late) {
		if are(member.Key) {
			member.NotBefore, member.First = 0, true
			first = append(first, member)
		}
	}
	for _, member := range q.Members {
		if !are(member.Key) {
			others = append(others, member)
		}
	}
	q.late = slices.DeleteFunc(q.late, func(m Member[K]) bool { return are(m.Key) })
	q.Members = slices.Concat(first, others)
	return len(first) > 0
}
