package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// TurnLane returns the lane of a pool as metrics have it.
func TurnLane(pool contract.Pool, lane int) metrics.TurnLane {
	return metrics.TurnLane{Pool: string(pool), Name: contract.LaneName(lane)}
}

// TurnUsable reports whether the running activity may make a Velero object with its turn. It compares times of one clock alone:
// of a regular activity Temporal's, and of a local one, which has no retries, the worker's. So a worker whose clock is wrong uses
// no turn too late.
func TurnUsable(ctx context.Context, turn contract.UsableTurn) bool {
	info := activity.GetInfo(ctx)
	if info.IsLocalActivity {
		return turn.Number > 0 && info.StartedTime.Sub(info.ScheduledTime) < turn.For
	}
	return turn.Number > 0 && info.StartedTime.Before(time.Unix(turn.Given, 0).Add(contract.TurnUsable))
}
