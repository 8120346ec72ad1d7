package turns

import (
	"slices"

	"holdfast.dev/holdfast/workflows/contract"
)

// Member waits for a turn, or for its next one.
type Member[K comparable] struct {
	// Key says who it is.
	Key K `json:"key"`
	// Namespace is whose turns go round with those of others.
	Namespace string `json:"namespace,omitempty"`
	// Lane is where it waits; 0 is the highest.
	Lane int `json:"lane,omitempty"`
	// Job is what its turn does, where turns do different things.
	Job string `json:"job,omitempty"`
	// First: people have put it first. It has its next turn before all others.
	First bool `json:"first,omitempty"`
	// Created orders the members of a namespace; those who have the same are in the order of their asking.
	Created int64 `json:"created,omitempty"`
	// Since is when it asked.
	Since int64 `json:"since,omitempty"`
	// NotBefore is the earliest begin of its next turn.
	NotBefore int64 `json:"notBefore,omitempty"`
	// Last is when its last turn began, and Outcome how that ended; empty before the first.
	Last    int64  `json:"last,omitempty"`
	Outcome string `json:"outcome,omitempty"`
}

// Turn is a turn that runs.
type Turn[K comparable] struct {
	// Member is whose turn it is, as it was when the turn began.
	Member[K]
	// Began is when it began. No two turns of a member have the same.
	Began int64 `json:"began"`
	// Closing: what is left of it does not count against the limit, and blocks its own member.
	Closing bool `json:"closing,omitempty"`
	// ClosedSince is when its workflow was first found not to run; 0 if it runs.
	ClosedSince int64 `json:"closedSince,omitempty"`
}

// Queue says who has a turn, and who is next. Times are Unix seconds. The fields are for carrying over to the next run; members
// and turns are changed through Member and Turn.
type Queue[K comparable] struct {
	// Members are in the order of their asking; whose turn has begun is at the end, or leaves. Order says whose turn is next.
	Members []Member[K]
	Turns   []Turn[K]
	Lanes   []Lane
	// Limit is how many turns may run at a time.
	Limit int
	// Weights are how many turns namespaces have in a round; 1 for those that it lacks.
	Weights map[string]int
	// Alone: a namespace has no second turn at a time while another has none and waits.
	Alone bool
	// Rest is how long a member waits at least from the begin of a turn to the next, in seconds. Without it a member has one
	// turn, and asks for another.
	Rest func(job string) int64
	// Most is how many members each lane carries at most; lanes that it lacks carry all. Those beyond are in objects: Lanes say
	// whose they are, and Beyond how many and when one may be due.
	Most   []int
	Beyond contract.Beyond

	// begun are the turns that began not long ago: another turn of the same member needs another number, and its rest.
	begun []Turn[K]
	// full is how many turns of each lane came before those beyond after the last refill, and refilled when that was.
	full     []int
	refilled int64
	// removed are those whom people have taken out: they are out until they ask again.
	removed []K
	// heard are those who have asked or left while objects are asked, or nil: what objects say of them is older. late are those
	// who wait and are not carried: objects may not tell of them yet.
	heard map[K]bool
	late  []Member[K]
	// again are the turns that are given again.
	again []Turn[K]
}

func (q *Queue[K]) member(key K) int {
	return slices.IndexFunc(q.Members, func(m Member[K]) bool { return m.Key == key })
}

func (q *Queue[K]) turn(key K) int {
	return slices.IndexFunc(q.Turns, func(t Turn[K]) bool { return t.Key == key })
}

// Member is the one who waits, or nil. It is good until the queue changes.
func (q *Queue[K]) Member(key K) *Member[K] {
	if at := q.member(key); at >= 0 {
		return &q.Members[at]
	}
	return nil
}

// Turn is the turn that runs, or nil. It is good until the queue changes.
func (q *Queue[K]) Turn(key K) *Turn[K] {
	if at := q.turn(key); at >= 0 {
		return &q.Turns[at]
	}
	return nil
}

// Add takes those who have asked and are not there yet. Each comes last in its namespace, but before those created later. One who
// would come after somebody beyond is left to its object.
func (q *Queue[K]) Add(now int64, members ...Member[K]) {
	var admitted []Member[K]
	for _, member := range members {
		q.hear(member.Key)
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

// Leave takes one out who waits. A turn that runs is not disturbed.
func (q *Queue[K]) Leave(key K) {
	q.hear(key)
	q.Members = slices.DeleteFunc(q.Members, func(m Member[K]) bool { return m.Key == key })
}

// Remove takes those out who wait, until they ask again: also if objects tell of them. Of many it remembers the last.
func (q *Queue[K]) Remove(keys ...K) {
	for _, key := range keys {
		q.Leave(key)
		q.removed = slices.DeleteFunc(q.removed, func(removed K) bool { return removed == key })
		q.removed = append(q.removed, key)
	}
	q.removed = last(q.removed, contract.MaxNoted)
}

// Waiting are those of them who wait.
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
		q.hear(key)
	}
	q.Turns = slices.DeleteFunc(q.Turns, func(t Turn[K]) bool { return t.Key == key })
}

// Empty reports whether nobody waits and no turn runs.
func (q *Queue[K]) Empty() bool {
	return len(q.Members)+len(q.Turns) == 0 && !q.hasBeyond()
}

// Running is how many turns count against the limit. One that is closing and whose workflow was found not to run is one of them:
// given again, it may be more than closing.
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

// Begin gives the next turn, if the limit allows one and somebody is due.
func (q *Queue[K]) Begin(now int64) (Turn[K], bool) {
	if q.Running() >= q.Limit {
		return Turn[K]{}, false
	}
	line := q.line(now)
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

// number is when a turn begins that begins now, but later than all earlier ones of its member.
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

// forgetBegun forgets turns that began so long ago that another of the same member has another number, and its rest is over.
func (q *Queue[K]) forgetBegun(now int64) {
	q.begun = slices.DeleteFunc(q.begun, func(t Turn[K]) bool { return t.Began+q.rest(t.Job) < now })
}

func (q *Queue[K]) rest(job string) int64 {
	if q.Rest == nil {
		return 0
	}
	return q.Rest(job)
}

// rotate puts one whose turn has begun at the end, or lets it go, and its namespace at the end of the round.
func (q *Queue[K]) rotate(turn Turn[K], since int64) {
	at := q.member(turn.Key)
	if at < 0 {
		return
	}
	member := q.Members[at]
	lane := q.lane(member.Lane)
	lane.Namespaces = lane.among(q.lines(member.Lane))
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
	if slices.Contains(lane.More, member.Namespace) { // those beyond come before it
		q.isBeyond(1, member.NotBefore)
		q.postpone(member)
		return
	}
	q.Members = append(q.Members, member)
}

// Next is when the next turn is due; 0 if that is for a turn to end, or somebody to ask.
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

// PutFirst puts those before all others, whatever they would have to wait for, and reports whether there are any. The last that
// was put first is the first of all.
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
