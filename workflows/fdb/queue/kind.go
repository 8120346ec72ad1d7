package queue

import (
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

var Kind = kinds.Kind{
	Kind:       contract.KindFDBExpiryQueue,
	Activities: contract.Names(contract.TellFDBExpiryQueue, contract.StartFDBExpiry, contract.FindFDBExpiries),
	Run:        kinds.Serving(Workflow),
}
