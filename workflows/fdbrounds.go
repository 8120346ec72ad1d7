package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/workflow"
)

// fdbRoundsVersion marks runs whose turns go round the namespaces. Those that began before know one line for all.
const fdbRoundsVersion = "turns-go-round-the-namespaces"

// fdbRounds are namespaces in the order of their next turns. Whose turn has begun goes to the end. So a namespace that has
// something to begin sees at most one turn of each other before its own, however many backups those have.
type fdbRounds struct {
	namespaces []string
	// single: there is one line, whatever the namespaces.
	single bool
}

func fdbRoundsOf(ctx workflow.Context, namespaces []string) fdbRounds {
	version := workflow.GetVersion(ctx, fdbRoundsVersion, workflow.DefaultVersion, 1)
	return fdbRounds{namespaces: namespaces, single: version == workflow.DefaultVersion}
}

// know puts those at the end that are not known yet.
func (r *fdbRounds) know(waiting []string) { r.namespaces = r.among(waiting) }

// among returns the namespaces in their order. Who is new comes last, and who waits for nothing is forgotten.
func (r *fdbRounds) among(waiting []string) []string {
	left := make(map[string]bool, len(waiting))
	for _, namespace := range waiting {
		left[namespace] = true
	}
	var order []string
	for _, list := range [][]string{r.namespaces, waiting} {
		for _, namespace := range list {
			if left[namespace] {
				order, left[namespace] = append(order, namespace), false
			}
		}
	}
	return order
}

// served puts a namespace whose turn has begun at the end.
func (r *fdbRounds) served(namespace string, waiting []string) {
	order := r.among(waiting)
	if at := slices.Index(order, namespace); at >= 0 {
		order = append(slices.Delete(order, at, at+1), namespace)
	}
	r.namespaces = order
}

// inFDBRounds orders those of a list that wait: the first of each namespace, then the second of each, and so on. Namespaces are
// in their order, and those of a namespace in the list's.
func inFDBRounds[T any](order []string, list []T, namespace func(T) string) []T {
	type place struct {
		round, rank int
		of          T
	}
	ranks := make(map[string]int, len(order))
	for rank, name := range order {
		ranks[name] = rank
	}
	rounds := make(map[string]int, len(order))
	places := make([]place, 0, len(list))
	for _, each := range list {
		name := namespace(each)
		places = append(places, place{round: rounds[name], rank: ranks[name], of: each})
		rounds[name]++
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Or(a.round-b.round, a.rank-b.rank) })
	ordered := make([]T, 0, len(places))
	for _, each := range places {
		ordered = append(ordered, each.of)
	}
	return ordered
}
