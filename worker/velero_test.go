package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities/drill/namespaces"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// names are those of the activities that are registered.
type names struct {
	worker.ActivityRegistry
	of []string
}

func (n *names) RegisterActivityWithOptions(_ any, options activity.RegisterOptions) {
	n.of = append(n.of, options.Name)
}

// The queue before Velero takes a census, as the coordinators of FoundationDB do: a worker without FoundationDB must have it, too.
func TestTheVeleroWorkerHasTheActivitiesOfItsWorkflows(t *testing.T) {
	wanted := []string{contract.DescribeWorkflows.Name}
	for _, kind := range workflows.Kinds() {
		if kind.Queue == contract.QueueVelero {
			wanted = append(wanted, kind.Activities...)
		}
	}
	registered := &names{}
	(&namespaces.Activities{}).Register(registered) // the drills' worker has them
	registerVelero(registered, &connect.Temporal{}, &workerFlags{}, &kube{rival: &k8s.Rival{}}, &decisions{})
	assert.ElementsMatch(t, wanted, registered.of)
}
