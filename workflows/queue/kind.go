package queue

import (
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind:       contract.KindVeleroQueue,
	Activities: contract.Names(contract.FindTurns, contract.GiveTurns, contract.ReturnTurn),
	Run:        kinds.Serving(Workflow),
}
