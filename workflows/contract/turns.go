package contract

import (
	"cmp"
	"slices"
)

// DescribeWorkflows returns those whose workflow does not run. Coordinators look after their members by it.
var DescribeWorkflows = Activity[Workflows, Workflows]{"describe-workflows", "Find out whose workflow does not run"}

// Workflows are workflows by their IDs, never a run's.
type Workflows struct {
	WorkflowIDs []string `json:"workflowIds,omitempty"`
}

// MaxCarried is how many of those who wait a coordinator carries from run to run: they must fit into a payload. MaxFound is how
// many of them objects are asked for at a time. Who is beyond is in the objects. MaxDeletions and MaxDeletionsFound are those
// that are deleted, besides. MaxNoted is how many it remembers of those who are out, or began a turn, and are not carried.
const (
	MaxCarried        = 2000
	MaxFound          = MaxCarried / 2
	MaxDeletions      = MaxCarried / 8
	MaxDeletionsFound = MaxDeletions / 2
	MaxNoted          = 200
)

// Carried is what a coordinator carries from run to run besides those who wait or have a turn.
type Carried[K comparable] struct {
	Lanes []Lane `json:"lanes,omitempty"`
	// Beyond is how many are not carried, and when one of them may be due.
	Beyond *Beyond `json:"beyond,omitempty"`
	// Refilled is when objects told last of those beyond, in Unix seconds.
	Refilled int64 `json:"refilled,omitempty"`
	// Begun are the last turns that began of those who are not carried.
	Begun []Begun[K] `json:"begun,omitempty"`
	// Removed are those whom people have taken out, until they ask again.
	Removed []K `json:"removed,omitempty"`
}

// Namespaces are in the order of their next turns in a lane.
func (c Carried[K]) Namespaces(lane int) []string {
	if lane < len(c.Lanes) {
		return c.Lanes[lane].Namespaces
	}
	return nil
}

// Lane is where the order in one lane of a coordinator stands.
type Lane struct {
	// Namespaces are in the order of their next turns; those that it lacks come last.
	Namespaces []string `json:"namespaces,omitempty"`
	// Taken are the turns of this round that namespaces have had which may have more.
	Taken map[string]int `json:"taken,omitempty"`
	// More have members who are not carried.
	More []string `json:"more,omitempty"`
	// Passed is how many turns of higher lanes have begun since the last of this one, while somebody waited.
	Passed int `json:"passed,omitempty"`
}

// Begun is a turn that began, in Unix seconds.
type Begun[K comparable] struct {
	Key   K      `json:"key"`
	Job   string `json:"job,omitempty"`
	Began int64  `json:"began"`
}

// Beyond is what is known of those who wait and are not carried.
type Beyond struct {
	// Count is how many there were when objects told of them.
	Count int `json:"count,omitempty"`
	// Namespaces that the coordinator carries have some of them. Others: so have namespaces that it does not.
	Namespaces []string `json:"namespaces,omitempty"`
	Others     bool     `json:"others,omitempty"`
	// NotBefore is the earliest time at which one of them may be due, in Unix seconds; 0 if one may be due at once.
	NotBefore int64 `json:"notBefore,omitempty"`
}

// OtherNamespaces stands, among the namespaces of a coordinator, for all of which nobody is carried.
const OtherNamespaces = "*"

// Front returns the first of those who wait: one of each namespace, then a second of each, and so on, as many as there is room
// for. Those of a namespace are in the list's order, and so is what is returned. Namespaces are in the order that the coordinator
// carries; those that it does not know are in their order where it says that the others stand, or at the end.
func Front[T any](list []T, room int, namespace func(T) string, carried, unknown []string) ([]T, Beyond) {
	if len(list) <= room {
		return list, Beyond{}
	}
	ranks, known := rankedNamespaces(carried, unknown)
	type place struct{ round, rank, at int }
	rounds := make(map[string]int, len(ranks))
	places := make([]place, 0, len(list))
	for at, each := range list {
		name := namespace(each)
		places = append(places, place{rounds[name], ranks[name], at})
		rounds[name]++
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(a.round-b.round, a.rank-b.rank) })
	in := make(map[int]bool, room)
	for _, place := range places[:room] {
		in[place.at], known[namespace(list[place.at])] = true, true
	}
	var front []T
	beyond, named := Beyond{Count: len(list) - room}, map[string]bool{}
	for at, each := range list {
		switch name := namespace(each); {
		case in[at]:
			front = append(front, each)
		case !known[name]:
			beyond.Others = true
		case !named[name]:
			named[name] = true
			beyond.Namespaces = append(beyond.Namespaces, name)
		}
	}
	return front, beyond
}

// rankedNamespaces are all namespaces by their places, and those that the coordinator carries.
func rankedNamespaces(carried, unknown []string) (ranks map[string]int, known map[string]bool) {
	ranks, known = map[string]int{}, map[string]bool{}
	for _, name := range carried {
		known[name] = name != OtherNamespaces
	}
	at := slices.Index(carried, OtherNamespaces)
	if at < 0 {
		at = len(carried)
	}
	order := slices.Clone(carried[:at])
	for _, name := range unknown {
		if !known[name] {
			order = append(order, name)
		}
	}
	for rank, name := range append(order, carried[at:]...) {
		if _, first := ranks[name]; !first {
			ranks[name] = rank
		}
	}
	return ranks, known
}
