package contract

import (
	"cmp"
	"slices"
)

// DescribeWorkflows returns the workflows that do not run, of those in its input. It is the census of coordinators.
var DescribeWorkflows = Activity[Workflows, Workflows]{"describe-workflows", "Find the workflows that do not run"}

// Workflows names workflows by their IDs; a run's ID is never used.
type Workflows struct {
	WorkflowIDs []string `json:"workflowIds,omitempty"`
}

// MaxCarried is how many waiting members a coordinator carries from run to run: they must fit into a payload. MaxFound is how
// many it gets from one listing of the objects; the others stay in the objects. MaxDeletions and MaxDeletionsFound are the same
// for deletions, which come on top. MaxNoted is how many members it remembers that were removed, or that began a turn and are not
// carried.
const (
	MaxCarried        = 2000
	MaxFound          = MaxCarried / 2
	MaxDeletions      = MaxCarried / 8
	MaxDeletionsFound = MaxDeletions / 2
	MaxNoted          = 200
)

// Carried is what a coordinator carries from run to run besides its members and turns.
type Carried[K comparable] struct {
	Lanes []Lane `json:"lanes,omitempty"`
	// Beyond describes the members that are not carried; nil if there are none.
	Beyond *Beyond `json:"beyond,omitempty"`
	// Refilled is when the last refill ended, in Unix seconds.
	Refilled int64 `json:"refilled,omitempty"`
	// Begun are the last turns that began, of members that are not carried.
	Begun []Begun[K] `json:"begun,omitempty"`
	// Removed are the members that operators have removed, until they ask again.
	Removed []K `json:"removed,omitempty"`
}

// Namespaces returns a lane's namespaces in the order of their next turns.
func (c Carried[K]) Namespaces(lane int) []string {
	if lane < len(c.Lanes) {
		return c.Lanes[lane].Namespaces
	}
	return nil
}

// Lane is the order in one lane of a coordinator.
type Lane struct {
	// Namespaces are in the order of their next turns; namespaces that are not in it come last.
	Namespaces []string `json:"namespaces,omitempty"`
	// Taken is how many turns a namespace has had in this round, if it may have more in it.
	Taken map[string]int `json:"taken,omitempty"`
	// More are the namespaces with members that are not carried.
	More []string `json:"more,omitempty"`
	// Passed is how many turns of higher lanes have begun since the last turn of this one, while a member waited in it.
	Passed int `json:"passed,omitempty"`
}

// Begun is a turn that began, in Unix seconds.
type Begun[K comparable] struct {
	Key   K      `json:"key"`
	Job   string `json:"job,omitempty"`
	Began int64  `json:"began"`
}

// Beyond describes the members that wait and are not carried.
type Beyond struct {
	// Count is how many there were when the objects were last listed.
	Count int `json:"count,omitempty"`
	// Namespaces are those that the coordinator carries and that have some of them. Others: namespaces that it does not carry have
	// some too.
	Namespaces []string `json:"namespaces,omitempty"`
	Others     bool     `json:"others,omitempty"`
	// NotBefore is the earliest time at which one of them may be due, in Unix seconds; 0 if one may be due at once.
	NotBefore int64 `json:"notBefore,omitempty"`
}

// OtherNamespaces stands, in a coordinator's order of namespaces, for all namespaces without a carried member.
const OtherNamespaces = "*"

// Front returns the head of the list, at most so many as there is room for: one of each namespace, then a second of each, and so
// on. The result is in the list's order. Namespaces come in the order that the coordinator carries. Those in unknown that it does
// not carry come, in their order, in the place of OtherNamespaces, or at the end. Beyond describes the members that are left out.
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

// NamespacesOf returns the namespaces of a list, in the order in which they occur first.
func NamespacesOf[T any](list []T, namespace func(T) string) []string {
	var names []string
	seen := map[string]bool{}
	for _, each := range list {
		if name := namespace(each); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// rankedNamespaces returns the place of each namespace in the order, and the namespaces that the coordinator carries.
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
