package workflows

import "holdfast.dev/holdfast/workflows/contract"

var fdbThrottleKind = Kind{
	Kind:       contract.KindFDBThrottle,
	Activities: contract.Names(contract.TellFDBThrottle, contract.FindFirstSnapshots),
	run:        serving(FDBSnapshotThrottle),
}
