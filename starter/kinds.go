package main

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// shown is a kind of objects as the command line lists and describes it.
type shown struct {
	contract.Kind
	// name of one on the command line; several have an s more.
	name     string
	list     lister
	describe describer
}

// shownKinds are in the order in which the help names them.
func shownKinds() []shown {
	return []shown{shownBackups, shownRestores, shownLocations, shownApprovals, shownFDBBackups, shownFDBRestores}
}

// show makes a kind of the tenants' objects from the columns of its list, what makes a row of an object and what is known of any,
// and what describes an object that was read.
func show[L any, List interface {
	*L
	client.ObjectList
}, T any, O interface {
	*T
	client.Object
}, Row any](
	kind contract.Kind, name string, columns []column[Row], row func(O, listed) Row, describe func(O, workflowDescriber) description,
) shown {
	return shown{kind, name, listerOf[L, List](kind, columns, row), describerOf(kind, describe)}
}

func singulars() []string {
	var names []string
	for _, kind := range shownKinds() {
		names = append(names, kind.name)
	}
	return names
}

func plurals() []string {
	names := singulars()
	for i := range names {
		names[i] += "s"
	}
	return names
}

// either is a choice in words: a, b or c.
func either(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
