package workflows

import "holdfast.dev/holdfast/workflows/contract"

var fdbExpiryQueueKind = Kind{
	Kind:       contract.KindFDBExpiryQueue,
	Activities: contract.Names(contract.TellFDBExpiryQueue, contract.StartFDBExpiry, contract.FindFDBExpiries),
	run:        serving(FDBExpiryQueue),
}
