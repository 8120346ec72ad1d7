package heartbeat

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// filled is how soon the caches are counted again that were not filled, and again how soon a heartbeat is that was not sent.
	filled = 5 * time.Second
	again  = 30 * time.Second
	// maxProblem is how long a problem may be, in bytes: it is shown in a column.
	maxProblem = 200
)

// Heartbeats are sent to the cluster's workflow.
type Heartbeats interface {
	// Send starts the workflow if it does not run.
	Send(ctx context.Context, state contract.WatcherState) error
}

// Sender sends the heartbeats of a cluster.
type Sender struct {
	Heartbeats Heartbeats
	// Version is that of the program.
	Version string
	// ClusterUID is that of the Kubernetes cluster.
	ClusterUID string
	// Census counts the objects in the caches; nil as long as they are not filled.
	Census func() *metrics.Census
	// Problem says why Holdfast does not act in the cluster, or not by the policy that is there; empty if it does.
	Problem func() string
	Now     func() time.Time
	Log     *zap.Logger
}

// Run sends a heartbeat every contract.HeartbeatInterval until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	for {
		timer := time.NewTimer(s.next(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// next sends one, and returns when the next is due.
func (s *Sender) next(ctx context.Context) time.Duration {
	census := s.Census()
	if census == nil {
		return filled
	}
	if err := s.Heartbeats.Send(ctx, s.state(census)); err != nil {
		s.Log.Warn("cannot send the heartbeat, will retry", zap.Error(err))
		return again
	}
	return contract.HeartbeatInterval
}

func (s *Sender) state(census *metrics.Census) contract.WatcherState {
	state := contract.WatcherState{
		Sent: s.Now().UTC().Truncate(time.Second), Version: s.Version, ClusterUID: s.ClusterUID,
		Problem:             shorten.Text(s.Problem(), maxProblem),
		Unfinished:          census.Unfinished.Number,
		ObjectivesMissed:    census.Plans.ObjectivesMissed + census.FoundationDB.ObjectivesMissed,
		VerificationsMissed: census.Plans.VerificationsMissed,
		Stalled:             census.Stalled + census.StalledRestores, PendingApprovals: census.PendingApprovals,
	}
	if oldest := census.Unfinished; oldest.Number > 0 {
		state.Oldest = &contract.UnfinishedObject{
			Kind: oldest.Kind, Namespace: oldest.Namespace, Name: oldest.Name, Created: oldest.Created.UTC(),
		}
	}
	return state
}

// Temporal implements Heartbeats with a Temporal client.
type Temporal struct {
	Client    client.Client
	ClusterID string
}

var _ Heartbeats = (*Temporal)(nil)

// Send implements Heartbeats.
func (t *Temporal) Send(ctx context.Context, state contract.WatcherState) error {
	return connect.Heartbeat(t.ClusterID).SignalWithStart(ctx, t.Client, contract.SignalHeartbeat, state)
}
