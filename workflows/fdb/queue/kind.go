package queue

import (
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind:       contract.KindFDBExpiryQueue,
	Activities: contract.Names(contract.SignalFDBExpiryQueue, contract.StartFDBExpiry, contract.FindFDBExpiries),
	Run:        kinds.Serving(Workflow),
}
