package queue

import (
	"context"
	"errors"
	"sync"

	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// givenAtATime is how many workflows are signalled at a time.
const givenAtATime = 8

// Activities finds and gives turns.
type Activities struct {
	// Client reads the API server itself.
	Client        client.Reader
	Policy        policy.Versioned
	OADPNamespace string
	// ClusterID is the Kubernetes cluster's: the names of Velero objects follow from it.
	ClusterID string
	// Temporal is the client of the namespace in which the workflows run.
	Temporal temporalclient.Client
	// Paused returns an error while another controller serves these kinds; nothing is done then.
	Paused func() error
}

// Register registers the activities with a worker under their wire names.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, a.Paused, contract.FindTurns, a.Find)
	activities.Register(registry, contract.GiveTurns, a.Give)
	activities.RegisterEffect(registry, contract.ReturnTurn, a.Return)
	for _, pool := range contract.Pools() {
		for _, lane := range pool.Lanes() {
			metrics.TurnsKnown(activities.TurnLane(pool, lane))
		}
	}
}

// Give signals each workflow that it has a turn. A turn that was given already is given again with the same number, which is
// harmless.
func (a *Activities) Give(ctx context.Context, in contract.TurnsGiven) (contract.TurnsRefused, error) {
	var (
		refused contract.TurnsRefused
		mutex   sync.Mutex
		all     errgroup.Group
	)
	all.SetLimit(givenAtATime)
	for _, given := range in.Turns {
		all.Go(func() error {
			changed := contract.VeleroChanged{
				Changed: contract.Changed{Reason: "turn"}, Turn: contract.Turn{Number: given.Turn, Given: in.Given},
			}
			err := connect.ForObject(given.Kind(), in.Cluster, given.ObjectRef).
				SignalWithStart(ctx, a.Temporal, contract.SignalChanged, changed)
			var invalid *serviceerror.InvalidArgument
			if errors.As(err, &invalid) {
				mutex.Lock()
				defer mutex.Unlock()
				refused.Keys = append(refused.Keys, given.TurnKey)
				return nil
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return contract.TurnsRefused{}, err
	}
	return refused, nil
}

// Return signals to the queue that a turn is not used. A queue that does not run has no turns. If the object is gone and
// Velero works on what was made for it nevertheless, the turn is used: the queue finds its workflow closed, and reads until
// Velero has finished.
func (a *Activities) Return(ctx context.Context, back contract.TurnReturn) error {
	if used, err := a.leftBehind(ctx, back); err != nil || used {
		return err
	}
	return connect.VeleroQueue(back.Cluster).SignalRunning(ctx, a.Temporal, contract.SignalTurnReturned, back)
}
