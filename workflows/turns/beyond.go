package turns

import (
	"slices"

	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// others are those of whom nobody is carried.
	others = contract.OtherNamespaces
	// refillPause is how long it is at least from one refill to the next, and newcomerPause how long at most one waits whose
	// namespace has members beyond before it is looked whether somebody is due, in seconds.
	refillPause   = 60
	newcomerPause = 600
)

// hasBeyond reports whether somebody who waits in the lane is not carried.
func (l *Lane) hasBeyond() bool { return len(l.More) > 0 || slices.Contains(l.Namespaces, others) }

// enter puts namespaces that are not known where others stand: all that had a turn, or came, since those were seen are behind
// them.
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

// Carry is what the next run needs of the order, in a queue of one lane; Resume takes it.
func (q *Queue[K]) Carry() (namespaces []string, beyond *contract.Beyond) {
	q.lane(0) // there is one
	lane := q.Settled()[0]
	if lane.hasBeyond() {
		beyond = &q.Beyond
		beyond.Namespaces = lane.More
	}
	return lane.Namespaces, beyond
}

// Resume takes what the last run has carried.
func (q *Queue[K]) Resume(namespaces []string, beyond *contract.Beyond) {
	q.Lanes = []Lane{{Namespaces: namespaces}}
	if beyond != nil {
		q.Beyond, q.Lanes[0].More = *beyond, beyond.Namespaces
	}
}

// admits reports whether one who asks comes before all who are beyond. Else it is left to its object: it would be carried before
// others of its namespace who wait longer.
func (q *Queue[K]) admits(member Member[K]) bool {
	lane, namespace := q.lane(member.Lane), q.lineOf(member)
	return !slices.Contains(lane.More, namespace) &&
		(!slices.Contains(lane.Namespaces, others) || slices.Contains(lane.Namespaces, namespace))
}

// isBeyond notes that so many are not carried, of whom the first may be due then.
func (q *Queue[K]) isBeyond(count int, notBefore int64) {
	if count > 0 && (q.Beyond.Count == 0 || notBefore < q.Beyond.NotBefore) {
		q.Beyond.NotBefore = notBefore
	}
	q.Beyond.Count += count
}

// Refill takes those whom objects tell of and who are not known yet, in the order of their waiting, and what is said of those
// beyond in each lane. Nobody who is carried is forgotten: objects may not tell of everybody yet.
func (q *Queue[K]) Refill(now int64, found []Member[K], beyond ...contract.Beyond) {
	known, began := map[K]bool{}, map[K]int64{}
	for _, member := range q.Members {
		known[member.Key] = true
	}
	for _, turn := range slices.Concat(q.begun, q.Turns) {
		began[turn.Key] = max(began[turn.Key], turn.Began)
		known[turn.Key] = known[turn.Key] || (q.Rest == nil && q.Turn(turn.Key) != nil)
	}
	var unknown []Member[K]
	for _, member := range found {
		if known[member.Key] {
			continue
		}
		known[member.Key] = true
		if last := began[member.Key]; q.Rest != nil && last > member.Last { // its object does not say so yet
			member.Last, member.NotBefore = last, last+q.Rest(member.Job)
		}
		unknown = append(unknown, member)
	}
	q.Beyond = contract.Beyond{}
	for i, of := range beyond {
		lane := q.lane(i)
		lane.More = of.Namespaces
		var lines []string
		for _, member := range unknown {
			if member.Lane == i {
				lines = append(lines, q.lineOf(member))
			}
		}
		lane.enter(lines, of.Others)
		q.isBeyond(of.Count, of.NotBefore)
	}
	q.insert(unknown)
	q.refilled = now
	q.full = q.allAhead(now)
}

// insert puts members into their places, and leaves to their objects who has no room.
func (q *Queue[K]) insert(members []Member[K]) {
	for _, member := range members {
		at := slices.IndexFunc(q.Members, func(m Member[K]) bool {
			return m.Created > member.Created && m.Namespace == member.Namespace && m.Lane == member.Lane
		})
		if at < 0 {
			at = len(q.Members)
		}
		q.Members = slices.Insert(q.Members, at, member)
		if !slices.Contains(q.lane(member.Lane).Namespaces, q.lineOf(member)) {
			q.Lanes = q.Settled()
		}
	}
	for i := range q.Lanes {
		if q.Most > 0 && len(q.Members) > q.Most {
			q.cut(i)
		}
	}
}

// cut carries the front half of a lane if it is too long. Whom people have put first stays.
func (q *Queue[K]) cut(lane int) {
	var list []Member[K]
	for _, member := range q.Members {
		if member.Lane == lane && !member.First {
			list = append(list, member)
		}
	}
	if len(list) <= q.Most {
		return
	}
	q.Lanes = q.Settled()
	front, beyond := contract.Front(list, q.Most/2, q.lineOf, q.Lanes[lane].Namespaces, nil)
	stays := make(map[K]bool, len(front))
	for _, member := range front {
		stays[member.Key] = true
	}
	for _, member := range list {
		if !stays[member.Key] {
			q.isBeyond(1, member.NotBefore)
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
	if len(l.More) > q.Most { // too many to be named: of those nobody is carried
		l.More = slices.DeleteFunc(l.More, func(namespace string) bool { return !slices.Contains(lines, namespace) })
		if !slices.Contains(l.Namespaces, others) {
			l.Namespaces = append(l.Namespaces, others)
		}
	}
	l.Namespaces = l.among(lines)
}

// ahead is how many turns in a lane come before that of anybody beyond; all is true if nobody beyond may be due before those that
// are carried are.
func (q *Queue[K]) ahead(lane int, now int64) (turns int, all bool) {
	l, due, rest, busy := &q.Lanes[lane], map[string]int{}, map[string]bool{}, q.busy()
	for _, member := range q.Members {
		switch namespace := q.lineOf(member); {
		case member.Lane != lane:
		case member.NotBefore <= now && !busy[member.Key]:
			due[namespace]++
		default:
			rest[namespace] = true
		}
	}
	ends := map[string]bool{others: true} // when those are through that are carried, it is the turn of one beyond
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

// RefillDue reports whether objects are to be asked for those beyond.
func (q *Queue[K]) RefillDue(now int64) bool {
	at := q.refillAt(now)
	return at != 0 && at <= now
}

// refillAt is when objects are to be asked for those beyond, because of the turns that came before them half are left; 0 if more
// are.
func (q *Queue[K]) refillAt(now int64) int64 {
	if !slices.ContainsFunc(q.Lanes, func(l Lane) bool { return l.hasBeyond() }) {
		return 0
	}
	if len(q.full) < len(q.Lanes) { // a new run
		q.full = q.allAhead(now)
	}
	for lane := range q.Lanes {
		if ahead, all := q.ahead(lane, now); !all && (ahead == 0 || ahead < q.full[lane]/2) {
			return max(q.Beyond.NotBefore, q.refilled+refillPause)
		}
	}
	return 0
}
