package call

import (
	"time"
)

// DefaultVeleroStallTimeout is --velero-stall-timeout unless the worker says otherwise.
const DefaultVeleroStallTimeout = 15 * time.Minute

// Options are what the worker's flags tell the workflows. They are read when an activity is scheduled and shape nothing
// but its timeouts and timers, so workers with different options can share a task queue.
type Options struct {
	Limits
	// VeleroStallTimeout is how long a finished backup may look unfinished before that is told; 15 minutes if zero.
	VeleroStallTimeout time.Duration
	// FDBStatusInterval is the longest time between two looks at a FoundationDB backup; 5 minutes if zero.
	FDBStatusInterval time.Duration
	// FDBSnapshotTimeout is how long a first snapshot may stand still before it gives its slot back; 30 minutes if zero.
	FDBSnapshotTimeout time.Duration
	// RestoreReadyTimeout is how long restored volumes and workloads are waited for; 10 minutes if zero.
	RestoreReadyTimeout time.Duration
	// FDBSnapshotLimit is how many first snapshots of FoundationDB run at a time; 1 if zero. It goes through the history.
	FDBSnapshotLimit int
	// FDBExpiryLimit is how many turns of the queue of expirations run at a time; 1 if zero. It goes through the history, as do
	// FDBExpiryRetryInterval, how long the queue waits for a free place at most, and until a turn that could not run is tried again
	// (10 minutes if zero), FDBExpiryMinInterval, the shortest time between two expirations of a backup (1 hour if zero), and
	// FDBExpiryTimeout, how long a turn's pod may run (1 hour if zero).
	FDBExpiryLimit         int
	FDBExpiryRetryInterval time.Duration
	FDBExpiryMinInterval   time.Duration
	FDBExpiryTimeout       time.Duration
}
