package tools

import (
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// Limits of the activities that run FoundationDB's tools.
const (
	PickUp           = time.Minute // by a worker with the tools
	Heartbeat        = 20 * time.Second
	InspectTimeout   = 6 * time.Minute
	InspectAttempts  = 3
	MaxCommandsInRow = 8
)

// CommandRun is how long a command may run once a worker has it.
func CommandRun(operation contract.FDBOperation) time.Duration {
	if operation == contract.FDBRestoreStart {
		return contract.FDBRestoreRun
	}
	return contract.FDBCommandRun
}
