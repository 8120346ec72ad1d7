package activities

import (
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// TurnLane returns the lane of a pool as metrics have it.
func TurnLane(pool contract.Pool, lane int) metrics.TurnLane {
	return metrics.TurnLane{Pool: string(pool), Name: contract.LaneName(lane)}
}
