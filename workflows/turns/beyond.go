package turns

import (
	"cmp"
	"maps"
	"slices"

	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// others stands for the namespaces without a carried member.
	others = contract.OtherNamespaces
	// refillPause is the least time between two refills unless Queue.Pause says otherwise. newcomerPause is how long at most a new
	// member waits for a refill if its namespace has members beyond. In seconds.
	refillPause   = 60
	newcomerPause = 600
)

// hasBeyond reports whether a member that waits in the lane is not carried.
func (l *Lane) hasBeyond() bool { return len(l.More) > 0 || slices.Contains(l.Namespaces, others) }

// enter puts unknown namespaces in the place of others: the namespaces behind that place have had a turn, or came, after those
// were listed. more says that still others are left.
func (l *Lane) enter(namespaces []string, more bool) {
	at := slices.Index(l.Namespaces, others)
	if at >= 0 {
		l.Namespaces = slices.Delete(l.Namespaces, at, at+1)
	} else {
		at = len(l.Namespaces)
	}
	known := map[string]bool{}
	for _, namespace := range l.Namespaces {
		known[namespace] = true
	}
	for _, namespace := range namespaces {
		if !known[namespace] {
			known[namespace] = true
			l.Namespaces = slices.Insert(l.Namespaces, at, namespace)
			at++
		}
	}
	if more {
		l.Namespaces = slices.Insert(l.Namespaces, at, others)
	}
}

// Carry returns what the next run needs to know besides members and turns; Resume restores it.
func (q *Queue[K]) Carry(now int64) contract.Carried[K] {
	q.lane(0) // there is one
	carried := contract.Carried[K]{Refilled: q.refilled, Removed: q.removed}
	for _, lane := range q.Settled() {
		carried.Lanes = append(carried.Lanes, contract.Lane(lane))
	}
	if q.hasBeyond() {
		carried.Beyond = &q.Beyond
	}
	q.forgetBegun(now)
	known := map[K]int64{}
	for _, member := range q.Members {
		if q.Rest != nil {
			known[member.Key] = member.Last
		}
	}
	for _, turn := range q.begun {
		if turn.Began > known[turn.Key] { // else the member has that time itself
			carried.Begun = append(carried.Begun, contract.Begun[K]{Key: turn.Key, Job: turn.Job, Began: turn.Began})
		}
	}
	carried.Begun = last(carried.Begun, contract.MaxNoted)
	return carried
}

// Resume restores what the last run has carried.
func (q *Queue[K]) Resume(carried contract.Carried[K]) {
	for _, lane := range carried.Lanes {
		q.Lanes = append(q.Lanes, Lane(lane))
	}
	if carried.Beyond != nil {
		q.Beyond = *carried.Beyond
	}
	for _, turn := range carried.Begun {
		q.begun = append(q.begun, Turn[K]{Member: Member[K]{Key: turn.Key, Job: turn.Job}, Began: turn.Began})
	}
	q.refilled, q.removed = carried.Refilled, carried.Removed
}

// last returns the end of a list, at most so many.
func last[T any](list []T, most int) []T { return list[max(0, len(list)-most):] }

// hasBeyond reports whether a member that waits is not carried.
func (q *Queue[K]) hasBeyond() bool {
	return slices.ContainsFunc(q.Lanes, func(l Lane) bool { return l.hasBeyond() })
}

// Listing notes that the listing of the objects begins. What members send from here to Refill is newer than the list.
func (q *Queue[K]) Listing() { q.noted = map[K]bool{} }

// noteMessage notes that a member has asked or left.
func (q *Queue[K]) noteMessage(key K) {
	if q.noted != nil {
		q.noted[key] = true
		q.late = slices.DeleteFunc(q.late, func(m Member[K]) bool { return m.Key == key })
	}
}

// postpone leaves a waiting member to its object. A list that is under way may not have it: after it, the member is added again.
func (q *Queue[K]) postpone(member Member[K]) {
	if q.noted != nil {
		q.late = append(q.late, member)
	}
}

// listed notes that the listing has ended, and adds the postponed members.
func (q *Queue[K]) listed(now int64) {
	late := q.late
	q.noted, q.late = nil, nil
	q.Add(now, slices.DeleteFunc(late, func(m Member[K]) bool { return q.member(m.Key) >= 0 })...)
}

// admits reports whether a member that asks comes before all that are beyond. If not, it is left to its object: it would be
// carried before others of its namespace that have waited longer.
func (q *Queue[K]) admits(member Member[K]) bool {
	lane, namespace := q.lane(member.Lane), member.Namespace
	return !slices.Contains(lane.More, namespace) &&
		(!slices.Contains(lane.Namespaces, others) || slices.Contains(lane.Namespaces, namespace))
}

// isBeyond notes that count more members are not carried, and when the first of them may be due.
func (q *Queue[K]) isBeyond(count int, notBefore int64) {
	if count > 0 && (q.Beyond.Count == 0 || notBefore < q.Beyond.NotBefore) {
		q.Beyond.NotBefore = notBefore
	}
	q.Beyond.Count += count
}

// Refill adds the members that were found in the objects and are not known, in the order of their waiting, and notes what is
// beyond in each lane. It drops no carried member, since a list may lack it, and adds none that was removed, or that has left
// since the listing began.
func (q *Queue[K]) Refill(now int64, found []Member[K], beyond ...contract.Beyond) {
	known, began := q.known(), map[K]Turn[K]{}
	for _, turn := range slices.Concat(q.begun, q.Turns) {
		if turn.Began >= began[turn.Key].Began {
			began[turn.Key] = turn
		}
	}
	var unknown []Member[K]
	for _, member := range found {
		if known[member.Key] {
			continue
		}
		known[member.Key] = true
		if turn := began[member.Key]; q.Rest != nil && turn.Began > member.Last { // its object does not show that turn yet
			member.Last = turn.Began
			if member.Job == turn.Job && !member.First {
				member.NotBefore = turn.Began + q.Rest(member.Job)
			}
		}
		unknown = append(unknown, member)
	}
	q.Beyond = contract.Beyond{}
	for i := range max(len(beyond), len(q.Lanes)) {
		var of contract.Beyond
		if i < len(beyond) {
			of = beyond[i]
		}
		lane := q.lane(i)
		lane.More = of.Namespaces
		var lines []string
		for _, member := range unknown {
			if member.Lane == i {
				lines = append(lines, member.Namespace)
			}
		}
		lane.enter(lines, of.Others)
		q.isBeyond(of.Count, of.NotBefore)
	}
	q.insert(unknown)
	q.listed(now)
	q.refilled = now
	q.full = q.allAhead(now)
}

// known returns the members about which a list says nothing new: those that are carried, have their one turn, are removed, or
// have sent something since the listing began.
func (q *Queue[K]) known() map[K]bool {
	known := maps.Clone(q.noted)
	if known == nil {
		known = map[K]bool{}
	}
	for _, member := range q.Members {
		known[member.Key] = true
	}
	for _, turn := range q.Turns {
		known[turn.Key] = known[turn.Key] || q.Rest == nil
	}
	for _, key := range q.removed {
		known[key] = true
	}
	return known
}

// insert puts members into their places. A lane that becomes too long is cut.
func (q *Queue[K]) insert(members []Member[K]) {
	for _, member := range members {
		at := slices.IndexFunc(q.Members, func(m Member[K]) bool {
			return m.Created > member.Created && m.Namespace == member.Namespace && m.Lane == member.Lane
		})
		if at < 0 {
			at = len(q.Members)
		}
		q.Members = slices.Insert(q.Members, at, member)
		if !slices.Contains(q.lane(member.Lane).Namespaces, member.Namespace) {
			q.settle()
		}
	}
	for i := range min(len(q.Lanes), len(q.Most)) {
		if most := q.Most[i]; most > 0 && len(q.Members) > most {
			q.cut(i, most)
		}
	}
}

// cut leaves a lane that is too long with the front half of its members; the rest stay in their objects. Members put first stay.
func (q *Queue[K]) cut(lane, most int) {
	var list []Member[K]
	for _, member := range q.Members {
		if member.Lane == lane && !member.First {
			list = append(list, member)
		}
	}
	if len(list) <= most {
		return
	}
	q.settle()
	front, beyond := contract.Front(list, most/2, func(m Member[K]) string { return m.Namespace }, q.Lanes[lane].Namespaces, nil)
	stays := make(map[K]bool, len(front))
	for _, member := range front {
		stays[member.Key] = true
	}
	for _, member := range list {
		if !stays[member.Key] {
			q.isBeyond(1, member.NotBefore)
			q.postpone(member)
		}
	}
	q.Members = slices.DeleteFunc(q.Members, func(m Member[K]) bool { return m.Lane == lane && !m.First && !stays[m.Key] })
	l := &q.Lanes[lane]
	for _, namespace := range beyond.Namespaces {
		if !slices.Contains(l.More, namespace) {
			l.More = append(l.More, namespace)
		}
	}
	lines := q.lines(lane)
	if len(l.More) > most { // too many names: others stands for those without a carried member
		l.More = slices.DeleteFunc(l.More, func(namespace string) bool { return !slices.Contains(lines, namespace) })
		if !slices.Contains(l.Namespaces, others) {
			l.Namespaces = append(l.Namespaces, others)
		}
	}
	*l = l.settled(lines)
}

// ahead returns how many turns in a lane come before that of a member beyond. all: no member beyond may be due before the carried
// ones are.
func (q *Queue[K]) ahead(lane int, now int64) (turns int, all bool) {
	l, due, rest, busy := &q.Lanes[lane], map[string]int{}, map[string]bool{}, q.busy()
	for _, member := range q.Members {
		switch namespace := member.Namespace; {
		case member.Lane != lane:
		case member.NotBefore <= now && !busy[member.Key]:
			due[namespace]++
		default:
			rest[namespace] = q.Rest != nil // else one of the others may have its turn meanwhile
		}
	}
	ends := map[string]bool{others: true} // after its carried members a member beyond has the turn
	for _, namespace := range l.More {
		ends[namespace] = !rest[namespace]
	}
	first, gap := 0, -1
	for at, namespace := range l.Namespaces {
		if rounds := due[namespace] / q.weight(namespace); ends[namespace] && (gap < 0 || rounds < first) {
			first, gap = rounds, at
		}
	}
	for at, namespace := range l.Namespaces {
		rounds := first
		if at < gap {
			rounds++
		}
		turns += min(due[namespace], rounds*q.weight(namespace))
	}
	return turns, gap < 0
}

func (q *Queue[K]) allAhead(now int64) []int {
	ahead := make([]int, len(q.Lanes))
	for lane := range q.Lanes {
		ahead[lane], _ = q.ahead(lane, now)
	}
	return ahead
}

// RefillDue reports whether the objects are to be listed for the members beyond.
func (q *Queue[K]) RefillDue(now int64) bool {
	at := q.refillAt(now)
	return at != 0 && at <= now
}

// refillAt returns when the objects are to be listed for the members beyond: once half of the turns that came before theirs are
// gone; 0 if more are left.
func (q *Queue[K]) refillAt(now int64) int64 {
	if q.noted != nil || !q.hasBeyond() { // a listing is under way, or nobody is beyond
		return 0
	}
	if len(q.full) < len(q.Lanes) { // a new run
		q.full = q.allAhead(now)
	}
	for lane := range q.Lanes {
		if ahead, all := q.ahead(lane, now); !all && (ahead == 0 || ahead < q.full[lane]/2) {
			return max(q.Beyond.NotBefore, q.refilled+cmp.Or(q.Pause, refillPause))
		}
	}
	return 0
}
