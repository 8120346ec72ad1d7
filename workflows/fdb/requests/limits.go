package requests

import (
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// Limits of the activities that run FoundationDB's tools.
const (
	PickUp           = time.Minute      // how long until a worker with the tools starts the activity
	Heartbeat        = 20 * time.Second // without one for so long the worker counts as lost
	InspectTimeout   = 6 * time.Minute
	InspectAttempts  = 3
	MaxCommandsInRow = 8
)

// CommandRun returns how long a command may run once a worker has started it.
func CommandRun(operation contract.FDBOperation) time.Duration {
	if operation == contract.FDBRestoreStart {
		return contract.FDBRestoreRun
	}
	return contract.FDBCommandRun
}
