package turns

import (
	"cmp"
	"maps"
	"slices"

	"holdfast.dev/holdfast/workflows/contract"
)

// patience is how many turns of higher lanes begin, while a member waits in a lane, before that lane has one.
const patience = 4

// Lane is the order in one lane: its namespaces in the order of their next turns. A namespace that has had its turns of this
// round goes to the end. So a namespace with a member that is due waits for one round of the others at most, however much those
// have.
type Lane contract.Lane

// settled returns a copy with the namespaces in their order. New ones come last, and those without a waiting member are dropped.
func (l *Lane) settled(waiting []string) Lane {
	waiting = slices.Concat(waiting, l.More)
	left := make(map[string]bool, len(waiting)+1)
	for _, namespace := range waiting {
		left[namespace] = true
	}
	left[others] = true // if it is there
	taken := maps.Clone(l.Taken)
	maps.DeleteFunc(taken, func(namespace string, _ int) bool { return !left[namespace] })
	var order []string
	for _, list := range [][]string{l.Namespaces, waiting} {
		for _, namespace := range list {
			if left[namespace] {
				order, left[namespace] = append(order, namespace), false
			}
		}
	}
	copied := *l
	copied.Namespaces, copied.Taken = order, taken
	return copied
}

// serve notes that a namespace has had a turn. After its last turn of the round it goes to the end.
func (l *Lane) serve(namespace string, weight int) {
	at := slices.Index(l.Namespaces, namespace)
	if at < 0 {
		return
	}
	if taken := l.Taken[namespace] + 1; taken < weight {
		if l.Taken == nil {
			l.Taken = map[string]int{}
		}
		l.Taken[namespace] = taken
		return
	}
	delete(l.Taken, namespace)
	l.Namespaces = append(slices.Delete(l.Namespaces, at, at+1), namespace)
}

// lane returns the state of a lane, and makes it if need be.
func (q *Queue[K]) lane(number int) *Lane {
	for len(q.Lanes) <= number {
		q.Lanes = append(q.Lanes, Lane{})
	}
	return &q.Lanes[number]
}

// lines returns the namespace of each member that waits in a lane.
func (q *Queue[K]) lines(lane int) []string {
	var lines []string
	for _, member := range q.Members {
		if member.Lane == lane {
			lines = append(lines, member.Namespace)
		}
	}
	return lines
}

func (q *Queue[K]) weight(namespace string) int { return max(1, q.Weights[namespace]) }

// Settled returns a copy of the lanes as the next run needs them: without namespaces that wait for nothing. It changes nothing.
func (q *Queue[K]) Settled() []Lane {
	count := len(q.Lanes)
	for _, member := range q.Members {
		count = max(count, member.Lane+1)
	}
	lanes := make([]Lane, count)
	copy(lanes, q.Lanes)
	for i := range lanes {
		lanes[i] = lanes[i].settled(q.lines(i))
	}
	return lanes
}

// settle drops the namespaces that wait for nothing. One that comes back later is the last of the round.
func (q *Queue[K]) settle() { q.Lanes = q.Settled() }

// Order returns the members in the order in which their turns begin if turns end in the order of their begins: first those
// that an operator has put first, then those that are due, by lanes and by rounds of the namespaces, and then those that are
// not, by their times. It changes nothing: queries are answered by it.
func (q *Queue[K]) Order(now int64) []Member[K] { return q.Head(now, len(q.Members)) }

// Head returns the first members of the order. It changes nothing.
func (q *Queue[K]) Head(now int64, most int) []Member[K] {
	line, order := q.line(now, q.Settled()), make([]Member[K], 0, most)
	line.ends = true
	for _, member := range q.Members {
		if member.First { // even if its own turn has to end first
			order = append(order, member)
		}
	}
	for len(order) < most {
		member, is := line.next()
		if !is {
			break
		}
		if !member.First {
			order = append(order, member)
		}
	}
	slices.SortStableFunc(line.later, func(a, b Member[K]) int { return cmp.Compare(a.NotBefore, b.NotBefore) })
	order = append(order, line.later...)
	return order[:min(most, len(order))]
}

// line is the order from which turns begin. It is a copy: next changes nothing else.
type line[K comparable] struct {
	queue        *Queue[K]
	first, later []Member[K]
	lanes        []Lane                   // with the namespaces that have a member that is due
	due          []map[string][]Member[K] // by lane and namespace
	has          []string                 // the namespaces of the turns that run, the oldest first
	// ends: where as many turns run as may, or more, the oldest end before the next begins.
	ends bool
}

// line returns the order by lanes that Settled has returned.
func (q *Queue[K]) line(now int64, lanes []Lane) *line[K] {
	l, busy := &line[K]{queue: q}, q.busy()
	for _, turn := range q.Turns {
		l.has = append(l.has, turn.Namespace)
	}
	for _, lane := range lanes {
		l.lanes = append(l.lanes, Lane{Taken: maps.Clone(lane.Taken), Passed: lane.Passed})
		l.due = append(l.due, map[string][]Member[K]{})
	}
	for _, member := range q.Members {
		switch due := member.NotBefore <= now && !busy[member.Key]; {
		case due && member.First:
			l.first = append(l.first, member)
		case due:
			of := l.due[member.Lane]
			of[member.Namespace] = append(of[member.Namespace], member)
		case !member.First:
			l.later = append(l.later, member)
		}
	}
	for i, lane := range lanes {
		for _, namespace := range lane.Namespaces {
			if len(l.due[i][namespace]) > 0 {
				l.lanes[i].Namespaces = append(l.lanes[i].Namespaces, namespace)
			}
		}
	}
	return l
}

// next returns the next member and removes it from the line.
func (l *line[K]) next() (Member[K], bool) {
	for l.ends && len(l.has) > 0 && len(l.has) >= l.queue.Limit {
		l.has = l.has[1:]
	}
	if len(l.first) > 0 {
		member := l.first[0]
		l.first = l.first[1:]
		l.serve(member)
		return member, true
	}
	lane, at := l.choose(func(namespace string) bool { return !l.queue.Alone || !slices.Contains(l.has, namespace) })
	if at < 0 {
		lane, at = l.choose(func(string) bool { return true })
	}
	if at < 0 {
		return Member[K]{}, false
	}
	for i := range l.lanes {
		if i == lane || len(l.lanes[i].Namespaces) == 0 {
			l.lanes[i].Passed = 0
		} else if i > lane {
			l.lanes[i].Passed++
		}
	}
	namespace := l.lanes[lane].Namespaces[at]
	member := l.due[lane][namespace][0]
	l.due[lane][namespace] = l.due[lane][namespace][1:]
	l.serve(member)
	if len(l.due[lane][namespace]) == 0 {
		l.lanes[lane].Namespaces = slices.DeleteFunc(l.lanes[lane].Namespaces, func(n string) bool { return n == namespace })
	}
	return member, true
}

func (l *line[K]) serve(member Member[K]) {
	namespace := member.Namespace
	l.lanes[member.Lane].serve(namespace, l.queue.weight(namespace))
	l.has = append(l.has, namespace)
}

// choose returns the highest lane with one of those namespaces, or a lower lane that has been skipped often enough, and the place
// of the first of them in it; -1 if there is none.
func (l *line[K]) choose(among func(namespace string) bool) (lane, at int) {
	at = -1
	for i := range l.lanes {
		if at >= 0 && l.lanes[i].Passed < patience {
			continue
		}
		first := slices.IndexFunc(l.lanes[i].Namespaces, among)
		switch {
		case first < 0:
		case at >= 0:
			return i, first
		default:
			lane, at = i, first
		}
	}
	return lane, at
}
