package throttle

import (
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind:       contract.KindFDBThrottle,
	Activities: contract.Names(contract.SignalFDBThrottle, contract.FindFirstSnapshots),
	Run:        kinds.Serving(Workflow),
}
