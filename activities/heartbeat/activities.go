package heartbeat

import (
	"context"
	"time"

	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/discovery"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// answerWithin is shorter than a local activity may take: silence is an answer, too.
	answerWithin = time.Second
	// maxProblem is how long a problem may be, in bytes: it is shown in a column.
	maxProblem = 200
)

// Activities answers for one worker.
type Activities struct {
	Discovery discovery.ServerVersionInterfaceWithContext
	// Version is that of the program, and Build the worker's build ID; empty without worker versioning.
	Version, Build string
}

// Register registers the activity with a worker under its wire name.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	activities.Register(registry, contract.InspectWorker, a.Inspect)
}

// Inspect reads the API server's version. An API server that does not answer in a second is a problem in the result, and
// no error: the heartbeat is to say so.
func (a *Activities) Inspect(ctx context.Context, _ contract.HeartbeatInput) (contract.WorkerState, error) {
	state := contract.WorkerState{Version: a.Version, Build: a.Build}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	version, err := a.Discovery.ServerVersionWithContext(ctx)
	if err != nil {
		state.Problem = shorten.Text("the API server does not answer the worker: "+err.Error(), maxProblem)
		return state, nil
	}
	state.Kubernetes = version.GitVersion
	return state, nil
}
