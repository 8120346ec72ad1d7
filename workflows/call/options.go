package call

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// DefaultVeleroStallTimeout is --velero-stall-timeout if the worker sets none.
const DefaultVeleroStallTimeout = 15 * time.Minute

// Options are the worker's flags for workflows. They are read when an activity is scheduled and determine only its timeouts and
// timers, so workers with different options can share a task queue.
type Options struct {
	Limits
	// VeleroStallTimeout is how long a finished backup may look unfinished before a stall is reported; 15 minutes if zero.
	VeleroStallTimeout time.Duration
	// FDBStatusInterval is the longest time between two reads of a FoundationDB backup's status; 5 minutes if zero.
	FDBStatusInterval time.Duration
	// FDBSnapshotTimeout is how long a first snapshot may make no progress before it gives its slot back; 30 minutes if zero.
	FDBSnapshotTimeout time.Duration
	// RestoreReadyTimeout is how long a finalization waits for restored volumes and workloads; 10 minutes if zero.
	RestoreReadyTimeout time.Duration
	// FDBSnapshotLimit is how many first snapshots of FoundationDB run at a time; 1 if zero. It goes through the history.
	FDBSnapshotLimit int
	// FDBExpiryLimit is how many turns of the queue of expirations run at a time; 1 if zero. It goes through the history, as do
	// the next three. FDBExpiryRetryInterval (10 minutes if zero) is how long the queue waits at most for a free place, and
	// until a turn that could not run is retried. FDBExpiryMinInterval (1 hour if zero) is the shortest time between two
	// expirations of a backup. FDBExpiryTimeout (1 hour if zero) is how long a turn's pod may run.
	FDBExpiryLimit         int
	FDBExpiryRetryInterval time.Duration
	FDBExpiryMinInterval   time.Duration
	FDBExpiryTimeout       time.Duration
}

// Flag returns what follows from the worker's flags where a decision depends on it. It goes through the history whenever it
// changes, so that a worker with other flags replays what was decided, and can take over. If the history is not readable,
// fallback holds.
func Flag[T comparable](ctx workflow.Context, effect string, present, fallback T) T {
	var recorded T
	err := workflow.MutableSideEffect(ctx, effect, func(workflow.Context) any { return present },
		func(a, b any) bool { return a == b }).Get(&recorded)
	if err != nil {
		workflow.GetLogger(ctx).Error("flags in the history cannot be read, the defaults apply", "effect", effect, "error", err)
		return fallback
	}
	return recorded
}
