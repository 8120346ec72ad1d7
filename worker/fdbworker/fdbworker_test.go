package fdbworker

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/workflows"
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

func TestTheWorkersHaveTheActivitiesOfTheirWorkflows(t *testing.T) {
	var wanted []string
	for _, kind := range workflows.Kinds() {
		if kind.Queue == contract.QueueFDB || kind.Queue == contract.QueueShared { // those of each queue come with its workflows
			wanted = append(wanted, kind.Activities...)
		}
	}
	registered := &names{}
	registerActivities(registered, Options{})
	registerTools(registered, Options{}, nil)
	assert.ElementsMatch(t, wanted, registered.of)
}
