package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// Shown is a kind of objects as the command line lists and describes it.
type Shown struct {
	contract.Kind
	// name of one on the command line; several have an s more.
	Name     string
	List     lister
	Describe describer
}

// Show makes a kind of the tenants' objects. columns are those of its list. row makes a row of an object, from it and from what
// is listed with it. describe describes an object that was read.
func Show[L any, List interface {
	*L
	client.ObjectList
}, T any, O interface {
	*T
	client.Object
}, Row any](
	kind contract.Kind, name string, columns []Column[Row], row func(O, Listed) Row, describe func(O, WorkflowDescriber) Description,
) Shown {
	return Shown{kind, name, listerOf[L, List](kind, columns, row), describerOf(kind, describe)}
}
